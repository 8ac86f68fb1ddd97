//! Values that many sessions have in common and that are therefore in memory once.

use acpipe_protocol::wire::SessionOptions;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

/// Immutable value whose clones share it. It is serialized as the value itself.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SharedValue<T>(Arc<T>);

impl<T> Clone for SharedValue<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> From<T> for SharedValue<T> {
    fn from(value: T) -> Self {
        Self(Arc::new(value))
    }
}

impl<T> Deref for SharedValue<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl SharedValue<SessionOptions> {
    /// Returns the options of most sessions: none is set.
    #[must_use]
    pub fn no_options() -> Self {
        static NONE: LazyLock<SharedValue<SessionOptions>> = LazyLock::new(SharedValue::default);
        NONE.clone()
    }
}

impl<T: Serialize> Serialize for SharedValue<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for SharedValue<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self::from)
    }
}
