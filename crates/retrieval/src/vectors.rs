//! Vectors as a corpus keeps them: each number in one byte, scaled to the largest of its vector.
//!
//! Made when chunks are embedded, kept beside their document, and scanned whole for every query. A cosine of two of them
//! differs from that of the numbers they were made of by less than a hundredth; floors are fitted on these, so they
//! mean the same everywhere. Nothing here knows what a vector is of.

use crate::error::Error;

/// The most numbers of a vector.
pub(crate) const MAX_DIMS: usize = 8_192;

/// The largest byte value, and so how many steps a number has on either side of 0.
const STEPS: f32 = 127.0;

/// Vectors of one length, in order, in a form in which they can be kept.
///
/// Each is its length (4 bytes, `f32`, little endian) and one signed byte a number. What a byte stands for differs from
/// vector to vector, and a cosine knows no scale.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vectors {
    dims: usize,
    bytes: Vec<i8>,
    /// The length of each vector of bytes; 0 for one that says nothing.
    lengths: Vec<f32>,
}

impl Vectors {
    /// Of what an embedder answered.
    ///
    /// # Errors
    /// [`Error::Vectors`] if they are not all of one length, or if a number is none.
    pub fn of(vectors: &[Vec<f32>]) -> Result<Vectors, Error> {
        let dims = vectors.first().map_or(0, Vec::len);
        let refuse = |problem: String| Err(Error::Vectors { problem });
        if dims > MAX_DIMS {
            return refuse(format!("vectors of {dims} numbers, more than {MAX_DIMS}"));
        }
        let mut all = Vectors {
            dims,
            ..Vectors::default()
        };
        for vector in vectors {
            if vector.len() != dims || dims == 0 {
                return refuse(format!("vectors of {dims} and of {} numbers", vector.len()));
            }
            if vector.iter().any(|number| !number.is_finite()) {
                return refuse("a vector with numbers that are none".to_owned());
            }
            all.push(vector);
        }
        Ok(all)
    }

    fn push(&mut self, vector: &[f32]) {
        let largest = vector
            .iter()
            .fold(0.0_f32, |most, number| most.max(number.abs()));
        let scale = if largest > 0.0 { STEPS / largest } else { 0.0 };
        let from = self.bytes.len();
        // A number beyond the range, which rounding cannot make, would become the nearest one.
        self.bytes
            .extend(vector.iter().map(|number| (number * scale).round() as i8));
        let own = self.bytes.get(from..).unwrap_or_default();
        self.lengths.push((dot(own, own) as f32).sqrt());
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// How many numbers each has.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// Adds others of the same length; those of another are not taken.
    pub(crate) fn extend(&mut self, others: &Vectors) {
        if self.is_empty() {
            self.dims = others.dims;
        }
        if self.dims == others.dims {
            self.bytes.extend_from_slice(&others.bytes);
            self.lengths.extend_from_slice(&others.lengths);
        }
    }

    /// Some of them, in order; none of those that are not there.
    pub(crate) fn range(&self, places: std::ops::Range<usize>) -> Vectors {
        let bytes = places.start * self.dims..places.end * self.dims;
        match (self.bytes.get(bytes), self.lengths.get(places)) {
            (Some(bytes), Some(lengths)) => Vectors {
                dims: self.dims,
                bytes: bytes.to_vec(),
                lengths: lengths.to_vec(),
            },
            _ => Vectors {
                dims: self.dims,
                ..Vectors::default()
            },
        }
    }

    /// The cosines of all of them with the first of another list, in order.
    pub(crate) fn cosines(&self, query: &Vectors) -> Vec<f32> {
        let (Some(wanted), Some(length)) = (query.bytes.get(..query.dims), query.lengths.first())
        else {
            return vec![0.0; self.len()];
        };
        if query.dims != self.dims || *length == 0.0 {
            return vec![0.0; self.len()];
        }
        let vectors = self.bytes.chunks_exact(self.dims).zip(&self.lengths);
        let cosine = |(own, own_length): (&[i8], &f32)| match *own_length > 0.0 {
            true => dot(own, wanted) as f32 / (own_length * length),
            false => 0.0,
        };
        vectors.map(cosine).collect()
    }

    /// As they are kept: for each vector its length and its bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut kept = Vec::with_capacity(self.len() * (self.dims + 4));
        for (own, length) in self.bytes.chunks_exact(self.dims.max(1)).zip(&self.lengths) {
            kept.extend(length.to_le_bytes());
            kept.extend(own.iter().map(|byte| byte.cast_unsigned()));
        }
        kept
    }

    /// What [`Vectors::to_bytes`] made of vectors of this length.
    ///
    /// # Errors
    /// What is wrong with them, in words.
    pub fn from_bytes(dims: usize, kept: &[u8]) -> Result<Vectors, String> {
        if kept.is_empty() {
            return Ok(Vectors {
                dims,
                ..Vectors::default()
            });
        }
        if dims == 0 || dims > MAX_DIMS || !kept.len().is_multiple_of(dims + 4) {
            return Err(format!(
                "{} bytes are no vectors of {dims} numbers",
                kept.len()
            ));
        }
        let mut all = Vectors {
            dims,
            ..Vectors::default()
        };
        for one in kept.chunks_exact(dims + 4) {
            let Some((length, own)) = one.split_first_chunk::<4>() else {
                break;
            };
            let length = f32::from_le_bytes(*length);
            let from = all.bytes.len();
            all.bytes.extend(own.iter().map(|byte| byte.cast_signed()));
            let own = all.bytes.get(from..).unwrap_or_default();
            if length != (dot(own, own) as f32).sqrt() {
                return Err("a vector does not have the length that it says".to_owned());
            }
            all.lengths.push(length);
        }
        Ok(all)
    }
}

/// The scalar product of two lists of the same length, none longer than [`MAX_DIMS`]: so it fits. In a form of which
/// the compiler makes operations on many numbers at once.
fn dot(one: &[i8], other: &[i8]) -> i32 {
    let product = |(a, b): (&i8, &i8)| i32::from(*a) * i32::from(*b);
    one.iter().zip(other).map(product).sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails has panicked")]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_list_of_vectors_is_refused() {
        let told = |vectors: &[Vec<f32>]| Vectors::of(vectors).unwrap_err().to_string();
        assert_eq!(
            told(&[vec![1.0, 2.0], vec![1.0]]),
            "the embedding model answered with vectors of 2 and of 1 numbers"
        );
        assert_eq!(
            told(&[vec![1.0, f32::NAN]]),
            "the embedding model answered with a vector with numbers that are none"
        );
        assert_eq!(
            told(&[vec![0.0; MAX_DIMS + 1]]),
            "the embedding model answered with vectors of 8193 numbers, more than 8192"
        );
        assert_eq!(Vectors::of(&[]).unwrap(), Vectors::default());
    }

    #[test]
    fn kept_bytes_that_are_damaged_are_found() {
        let kept = Vectors::of(&[vec![1.0, -0.5], vec![0.0, 0.25]]).unwrap();
        let bytes = kept.to_bytes();
        assert_eq!(Vectors::from_bytes(2, &bytes), Ok(kept));
        assert_eq!(
            Vectors::from_bytes(3, &bytes),
            Err("12 bytes are no vectors of 3 numbers".to_owned())
        );
        let mut changed = bytes;
        *changed.last_mut().unwrap() ^= 1;
        let told = Err("a vector does not have the length that it says".to_owned());
        assert_eq!(Vectors::from_bytes(2, &changed), told);
    }

    #[test]
    fn a_vector_that_says_nothing_is_like_none() {
        let vectors = Vectors::of(&[vec![0.0, 0.0], vec![1.0, 0.0]]).unwrap();
        let query = Vectors::of(&[vec![1.0, 0.0]]).unwrap();
        assert_eq!(vectors.cosines(&query), [0.0, 1.0]);
        assert_eq!(query.cosines(&vectors), [0.0]);
        let longer = Vectors::of(&[vec![1.0, 0.0, 0.0]]).unwrap();
        assert_eq!(vectors.cosines(&longer), [0.0, 0.0]);
    }

    proptest! {
        #[test]
        fn cosines_are_nearly_those_of_the_numbers(
            pair in prop::collection::vec((-1.0_f32..1.0, -1.0_f32..1.0), 64..400)
        ) {
            let (one, other): (Vec<f32>, Vec<f32>) = pair.into_iter().unzip();
            let exact = paraph_models::cosine(&one, &other);
            let kept = Vectors::of(&[one]).unwrap();
            let near = kept.cosines(&Vectors::of(&[other]).unwrap());
            prop_assert!((near.first().unwrap() - exact).abs() < 0.01, "{near:?} {exact}");
            prop_assert_eq!(Vectors::from_bytes(kept.dims(), &kept.to_bytes()).unwrap(), kept);
        }
    }
}
