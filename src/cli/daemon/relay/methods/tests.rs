//! Tests of the table of methods: every method of the protocol is in it.

use super::*;
use crate::cli::schema::DISCOVER;
use acpipe_core::client::Command;
use acpipe_core::methods::{Method, MethodVisitor, visit_methods};
use acpipe_protocol::has_schema::HasSchema;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::collections::BTreeSet;

struct Names(BTreeSet<&'static str>);

impl MethodVisitor for Names {
    fn visit<P, R>(&mut self, method: &'static Method, _: fn(P) -> Command)
    where
        P: DeserializeOwned + HasSchema + 'static,
        R: HasSchema,
    {
        self.0.insert(method.name);
    }
}

#[test]
fn every_method_of_the_protocol_has_one_row() {
    let mut names = Names(BTreeSet::from([DISCOVER, "$/cancelRequest"]));
    visit_methods(&mut names);
    let rows: BTreeSet<&str> = NEUTRAL.iter().map(|(name, ..)| *name).collect();
    assert_eq!(rows, names.0);
    assert_eq!(rows.len(), NEUTRAL.len(), "a method has two rows");
}

#[test]
fn method_that_only_reads_leaves_no_state() {
    struct Reads;
    impl MethodVisitor for Reads {
        fn visit<P, R>(&mut self, method: &'static Method, _: fn(P) -> Command)
        where
            P: DeserializeOwned + HasSchema + 'static,
            R: HasSchema,
        {
            if method.only_reads {
                let effect = RelayFace::Neutral.effect(method.name);
                assert_eq!(effect, NoState, "{}", method.name);
            }
        }
    }
    visit_methods(&mut Reads);
}

#[test]
fn opening_of_a_session_binds_with_members_that_are_not_stored() {
    let binds = |params: &Value| RelayFace::Neutral.binds("session/ensure", params, None);
    let stored = json!({"sessionId": "s", "cwd": "/a", "strict": true, "timeoutMs": 1, "agent": null,
        "options": {}, "mcpServers": []});
    assert!(!binds(&stored));
    for params in [
        json!({"agent": "a"}),
        json!({"options": {"mode": "x"}}),
        json!({"mcpServers": [{}]}),
        json!({"later": 1}),
        json!({"cwd": "/a"}),
        json!({"sessionId": "default", "cwd": "/a"}),
    ] {
        assert!(binds(&params), "{params}");
    }
}
