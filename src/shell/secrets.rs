//! Known secrets that all threads share: the loop and the faces add them, the threads of log and tape hide them.

use crate::core::secret::{Known, KnownSecrets, Secrets};
use crate::proto::wire::Variables;
use std::ffi::OsString;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

/// Creates a list of known secrets with those of acpipe's own environment.
#[must_use]
pub fn known_secrets(environment: Variables) -> Secrets {
    Secrets::of_environment(Arc::<Owner>::default(), environment)
}

/// Creates a list of known secrets with those of the environment of this process.
#[must_use]
pub fn own_secrets() -> Secrets {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, Some(value.into_string().ok()?)))
    };
    known_secrets(std::env::vars_os().filter_map(text).collect())
}

/// Owner of known secrets: acpipe itself, or one of its clients until it is dropped.
#[derive(Debug, Default)]
struct Owner {
    number: u64,
    known: Arc<RwLock<Known>>,
}

impl KnownSecrets for Owner {
    fn of_client(&self) -> Arc<dyn KnownSecrets> {
        let known = self.known.write();
        let number = known.unwrap_or_else(PoisonError::into_inner).new_owner();
        Arc::new(Self {
            number,
            known: Arc::clone(&self.known),
        })
    }

    fn add(&self, forms: &[Vec<u8>]) {
        if !forms.is_empty() {
            let known = self.known.write();
            known
                .unwrap_or_else(PoisonError::into_inner)
                .add(self.number, forms);
        }
    }

    fn find(&self, text: &[u8], found: &mut dyn FnMut(Range<usize>)) {
        let known = self.known.read();
        known
            .unwrap_or_else(PoisonError::into_inner)
            .find(text, found);
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let known = self.known.write();
        known
            .unwrap_or_else(PoisonError::into_inner)
            .leave(self.number);
    }
}
