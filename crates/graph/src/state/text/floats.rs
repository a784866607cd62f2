//! Looks through a value for numbers that JSON does not have. Writes nothing, keeps nothing.

use serde::{Serialize, Serializer, ser};
use std::fmt;

/// Whether there is a `NaN` or an infinity in `value`.
pub(super) fn has_odd<T: Serialize + ?Sized>(value: &T) -> bool {
    value.serialize(Finder).is_err()
}

/// Fails on the first odd number.
struct Finder;

/// An odd number was found, or the value could not be looked through.
#[derive(Debug)]
struct Found;

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number that JSON does not have")
    }
}

impl std::error::Error for Found {}

impl ser::Error for Found {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Found
    }
}

fn finite(is: bool) -> Result<(), Found> {
    if is { Ok(()) } else { Err(Found) }
}

macro_rules! plain {
    ($($method:ident: $Type:ty),*) => {
        $(fn $method(self, _: $Type) -> Result<(), Found> { Ok(()) })*
    };
}

impl Serializer for Finder {
    type Ok = ();
    type Error = Found;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    plain! {
        serialize_bool: bool, serialize_char: char, serialize_str: &str, serialize_bytes: &[u8],
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_i128: i128, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32,
        serialize_u64: u64, serialize_u128: u128, serialize_unit_struct: &'static str
    }

    fn serialize_f32(self, v: f32) -> Result<(), Found> {
        finite(v.is_finite())
    }
    fn serialize_f64(self, v: f64) -> Result<(), Found> {
        finite(v.is_finite())
    }
    fn serialize_none(self) -> Result<(), Found> {
        Ok(())
    }
    fn serialize_unit(self) -> Result<(), Found> {
        Ok(())
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Found> {
        value.serialize(self)
    }
    fn serialize_unit_variant(self, _: &str, _: u32, _: &str) -> Result<(), Found> {
        Ok(())
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Found> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), Found> {
        value.serialize(self)
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Found> {
        Ok(self)
    }
    fn serialize_tuple(self, _: usize) -> Result<Self, Found> {
        Ok(self)
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Found> {
        Ok(self)
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Found> {
        Ok(self)
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Self, Found> {
        Ok(self)
    }
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Found> {
        Ok(self)
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Found> {
        Ok(self)
    }
}

macro_rules! compound {
    ($($Trait:ident::$method:ident),*) => {
        $(impl ser::$Trait for Finder {
            type Ok = ();
            type Error = Found;
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Found> {
                value.serialize(Finder)
            }
            fn end(self) -> Result<(), Found> {
                Ok(())
            }
        })*
    };
}

compound!(
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field
);

macro_rules! fields {
    ($($Trait:ident),*) => {
        $(impl ser::$Trait for Finder {
            type Ok = ();
            type Error = Found;
            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                _: &'static str,
                value: &T,
            ) -> Result<(), Found> {
                value.serialize(Finder)
            }
            fn end(self) -> Result<(), Found> {
                Ok(())
            }
        })*
    };
}

fields!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for Finder {
    type Ok = ();
    type Error = Found;
    // A key is text on its way into JSON, or the writing of it has failed before.
    fn serialize_key<T: Serialize + ?Sized>(&mut self, _: &T) -> Result<(), Found> {
        Ok(())
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Found> {
        value.serialize(Finder)
    }
    fn end(self) -> Result<(), Found> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::has_odd;
    use serde::Serialize;
    use std::collections::BTreeMap;

    #[derive(Serialize)]
    enum Kind {
        None,
        One(f64),
        Two(f64, f32),
        Named { x: Option<f64> },
    }

    #[test]
    fn odd_numbers_are_found_wherever_they_are_and_nothing_else_is() {
        let nan = f64::NAN;
        let map = |x: f64| BTreeMap::from([("a", vec![None, Some((x, ()))])]);
        for (value, odd) in [
            (map(1.0), false),
            (map(nan), true),
            (map(f64::INFINITY), true),
        ] {
            assert_eq!(has_odd(&value), odd, "{value:?}");
        }
        let kinds = [
            (Kind::None, false),
            (Kind::One(0.0), false),
            (Kind::One(nan), true),
            (Kind::Two(0.0, f32::NEG_INFINITY), true),
            (Kind::Named { x: None }, false),
            (Kind::Named { x: Some(nan) }, true),
        ];
        for (i, (kind, odd)) in kinds.iter().enumerate() {
            assert_eq!(has_odd(kind), *odd, "kind {i}");
        }
    }
}
