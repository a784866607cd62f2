//! The proof that an effect may happen now, and what is left of it when its end was not seen.
//!
//! Both are made in `erased.rs` alone, from stored bytes, and die there.

use super::Effect;
use crate::action::{Action, ActionId};
use crate::call::sha256;
use std::marker::PhantomData;
use std::ops::Deref;
use std::time::Duration;

/// The proof that this effect may happen now, once, with these arguments.
///
/// It cannot be made outside of the gateway, nor copied, kept, changed, read from anywhere, or used twice or for another
/// effect. Each of these fails to compile, and its neighbour compiles.
///
/// Made, and looked at:
/// ```compile_fail,E0451
/// use paraph_gateway::{Signed, Warrant, examples::{Amount, Pay}};
/// fn make<'w>(signed: Signed<'w, Amount>) -> Warrant<'w, Pay> {
///     Warrant { signed, effect: std::marker::PhantomData }
/// }
/// ```
/// ```
/// use paraph_gateway::{Signed, Warrant, examples::{Amount, Pay}};
/// fn look<'a, 'w>(warrant: &'a Warrant<'w, Pay>) -> &'a Signed<'w, Amount> { warrant }
/// ```
/// Copied, and passed on:
/// ```compile_fail,E0308
/// use paraph_gateway::{Warrant, examples::Pay};
/// fn copy<'w>(warrant: &Warrant<'w, Pay>) -> Warrant<'w, Pay> { warrant.clone() }
/// ```
/// ```
/// use paraph_gateway::{Warrant, examples::Pay};
/// fn pass<'w>(warrant: Warrant<'w, Pay>) -> Warrant<'w, Pay> { warrant }
/// ```
/// Changed, and read:
/// ```compile_fail,E0594
/// use paraph_gateway::{Warrant, examples::Pay};
/// fn change(mut warrant: Warrant<'_, Pay>) { warrant.args.cents = 1_000_000; }
/// ```
/// ```
/// use paraph_gateway::{Warrant, examples::Pay};
/// fn read(warrant: Warrant<'_, Pay>) -> u32 { warrant.args.cents }
/// ```
/// Kept, and its key kept:
/// ```compile_fail
/// use paraph_gateway::{Warrant, examples::Pay};
/// struct Keep(Option<Warrant<'static, Pay>>);
/// fn keep(shelf: &mut Keep, warrant: Warrant<'_, Pay>) { shelf.0 = Some(warrant); }
/// ```
/// ```
/// use paraph_gateway::{Warrant, examples::Pay};
/// struct Keep(Option<String>);
/// fn keep(shelf: &mut Keep, warrant: Warrant<'_, Pay>) { shelf.0 = Some(warrant.key()); }
/// ```
/// Used twice, and once:
/// ```compile_fail,E0382
/// use paraph_gateway::{Warrant, examples::Pay};
/// fn once(warrant: Warrant<'_, Pay>) {}
/// fn twice(warrant: Warrant<'_, Pay>) { once(warrant); once(warrant); }
/// ```
/// ```
/// use paraph_gateway::{Warrant, examples::Pay};
/// fn once(warrant: Warrant<'_, Pay>) {}
/// fn use_it(warrant: Warrant<'_, Pay>) { once(warrant); }
/// ```
/// Read from JSON, where its arguments can be:
/// ```compile_fail,E0277
/// use paraph_gateway::{Warrant, examples::Pay};
/// fn read() -> Warrant<'static, Pay> { serde_json::from_str("{}").unwrap() }
/// ```
/// ```
/// use paraph_gateway::examples::Amount;
/// fn read() -> Amount { serde_json::from_str(r#"{"cents":1}"#).unwrap() }
/// assert_eq!(read().cents, 1);
/// ```
/// Used for another effect, and for its own:
/// ```compile_fail,E0308
/// use paraph_gateway::{Warrant, examples::{Comment, Pay}};
/// fn comment(warrant: Warrant<'_, Comment>) {}
/// fn other(warrant: Warrant<'_, Pay>) { comment(warrant); }
/// ```
/// ```
/// use paraph_gateway::{Warrant, examples::Pay};
/// fn pay(warrant: Warrant<'_, Pay>) {}
/// fn own(warrant: Warrant<'_, Pay>) { pay(warrant); }
/// ```
pub struct Warrant<'w, E: Effect + ?Sized> {
    signed: Signed<'w, E::Args>,
    effect: PhantomData<fn(&'w E)>,
}

/// What was signed, as effects see it: `warrant.args`.
pub struct Signed<'w, A> {
    /// The arguments, decoded from the signed bytes.
    pub args: A,
    action: &'w Action,
}

impl<'w, E: Effect + ?Sized> Warrant<'w, E> {
    pub(super) fn of(action: &'w Action, args: E::Args) -> Warrant<'w, E> {
        Warrant {
            signed: Signed { args, action },
            effect: PhantomData,
        }
    }
}

/// To be looked at: nothing in it can be replaced.
impl<'w, E: Effect + ?Sized> Deref for Warrant<'w, E> {
    type Target = Signed<'w, E::Args>;

    fn deref(&self) -> &Self::Target {
        &self.signed
    }
}

/// An attempt whose end nobody saw.
pub struct Attempt<'w, E: Effect + ?Sized> {
    signed: Signed<'w, E::Args>,
    times: u64,
    since: Duration,
    effect: PhantomData<fn(&'w E)>,
}

impl<'w, E: Effect + ?Sized> Attempt<'w, E> {
    pub(super) fn of(
        action: &'w Action,
        args: E::Args,
        (times, since): (u64, Duration),
    ) -> Attempt<'w, E> {
        Attempt {
            signed: Signed { args, action },
            times,
            since,
            effect: PhantomData,
        }
    }
}

impl<E: Effect + ?Sized> Attempt<'_, E> {
    /// How often it was sent.
    pub fn times(&self) -> u64 {
        self.times
    }

    /// How long ago it was sent last. Within its own timeout and a while after, what was not found may still arrive:
    /// answer [`Found::NotYet`](super::Found::NotYet).
    pub fn since(&self) -> Duration {
        self.since
    }
}

impl<'w, E: Effect + ?Sized> Deref for Attempt<'w, E> {
    type Target = Signed<'w, E::Args>;

    fn deref(&self) -> &Self::Target {
        &self.signed
    }
}

impl<A> Signed<'_, A> {
    /// The idempotency key for the other side: 64 hexadecimal digits, the same on every attempt of this action, and
    /// of no other action of any tenant.
    pub fn key(&self) -> String {
        key_of(self.action)
    }

    /// A text to leave on the other side where it has no keys, so that it can be found again.
    pub fn marker(&self) -> String {
        let proof = sha256(&format!(
            "paraph/marker/v1 {} {}",
            self.action.id, self.action.digest
        ));
        let proof = proof.get(..16).unwrap_or(&proof);
        format!("paraph:act={};k={proof}", self.action.id)
    }

    /// The id that was signed for a name in the arguments, by the name that [`Effect::resolve`] gave it.
    pub fn target(&self, name: &str) -> Option<&str> {
        let targets = &self.action.said.resolved.targets;
        targets.get(name).map(String::as_str)
    }

    /// What was seen when it was proposed, and was so still a moment ago: a condition for an other side that takes
    /// conditions.
    pub fn precondition(&self, name: &str) -> Option<&str> {
        let preconditions = &self.action.said.resolved.preconditions;
        preconditions.get(name).map(String::as_str)
    }

    /// The action.
    pub fn action(&self) -> ActionId {
        self.action.id
    }

    /// The digest that was signed.
    pub fn digest(&self) -> &str {
        &self.action.digest
    }
}

/// The idempotency key of an action: SHA-256 of `paraph/key/v1`, the tenant's length in bytes, the tenant and the id.
pub(super) fn key_of(action: &Action) -> String {
    let tenant = &action.said.run.tenant;
    let (length, id) = (tenant.len(), action.id);
    sha256(&format!("paraph/key/v1 {length} {tenant} {id}"))
}
