//! Tests of restricted policies, and of labels and modes in them.

use super::generated::{Dice, policy, subject};
use super::*;

#[test]
fn restricted_policy_is_never_weaker_than_either() {
    let mut dice = Dice(7);
    let (mut own, mut other) = (0, 0);
    for _ in 0..2000 {
        let mut policies = [policy(&mut dice), policy(&mut dice), policy(&mut dice)];
        for policy in &mut policies {
            policy.set_mode(Mode::ALL[dice.below(4)]);
        }
        let [a, b, c] = policies;
        let subject = subject(&mut dice);
        let both = a.clone().restricted_by(b.clone().restricted_by(c.clone()));
        let verdict = both.judge(&subject);
        let singles = [a.judge(&subject), b.judge(&subject), c.judge(&subject)];
        let strongest = singles.iter().map(|one| one.effect).max().unwrap();
        assert_eq!(verdict.effect, strongest, "{subject:?}");
        let first = singles.iter().find(|one| one.effect == strongest);
        assert_eq!(Some(&verdict), first, "{subject:?}");
        if singles[0].effect == strongest {
            own += 1;
        } else {
            other += 1;
        }
    }
    assert!(own > 100 && other > 100, "{own} {other}");
}

#[test]
fn restriction_cannot_set_what_allows_more() {
    let loose = |set: Option<bool>| {
        let mut policy = Policy::default();
        if let Some(set) = set {
            policy.set_always(set);
            policy.set_unanswered_allows(set);
        }
        policy
    };
    for (own, other, want) in [
        (None, Some(true), false),
        (Some(false), Some(true), false),
        (Some(true), None, true),
        (Some(true), Some(true), true),
        (Some(true), Some(false), false),
    ] {
        let policy = loose(own).restricted_by(loose(other));
        assert_eq!(policy.prefers_always(), want, "{own:?} {other:?}");
        assert_eq!(
            policy.unanswered() == Effect::Allow,
            want,
            "{own:?} {other:?}"
        );
    }
}

#[test]
fn restriction_counts_for_questions_about_a_policy() {
    let options = SessionOptions::default();
    let alone = Policy::from(Mode::Approve);
    assert!(!alone.may_restrict(&options) && !alone.may_ask(&options) && !alone.has_rules());
    let mut other = Policy::from(Mode::Ask);
    other.add_listed("Bash", "list", Effect::Deny).unwrap();
    let both = alone.restricted_by(other);
    assert!(both.may_restrict(&options) && both.may_ask(&options) && both.has_rules());
}

#[test]
fn overriding_mode_keeps_the_rules_of_restrictions() {
    let mut other = Policy::from(Mode::Deny);
    other.add_listed("Read", "list", Effect::Ask).unwrap();
    let mut policy = Policy::from(Mode::Reads).restricted_by(other);
    policy.set_label("agent \"a\": ");
    let by = |policy: &Policy, kind| policy.judge(&file(kind, "/w/a", "/w")).by;
    assert_eq!(by(&policy, "edit"), "permissions \"deny\"");
    policy.override_mode(Mode::Approve);
    assert_eq!(by(&policy, "edit"), "permissions \"approve\"");
    assert_eq!(by(&policy, "read"), "list \"Read\"");
    // The order of overriding and restricting does not matter.
    policy.set_mode(Mode::Deny);
    policy.set_preset(&PRESETS[0]);
    policy.set_label("later: ");
    let policy = policy.restricted_by(Policy::from(Mode::Ask));
    assert_eq!(by(&policy, "edit"), "permissions \"approve\"");
}

#[test]
fn label_names_the_definition_of_a_mode_or_preset() {
    let mut policy = Policy::from(Mode::Reads);
    policy.set_label("agent \"a\": ");
    let edit = file("edit", "/w/a", "/w");
    assert_eq!(policy.judge(&edit).by, "agent \"a\": permissions \"reads\"");
    policy.set_preset(&PRESETS[0]);
    assert_eq!(policy.judge(&edit).by, "preset \"leashd\"");
    policy.set_label("agent \"b\": ");
    assert_eq!(policy.judge(&edit).by, "agent \"b\": preset \"leashd\"");
}

#[test]
fn policy_with_that_of_a_caller_is_never_weaker_than_either() {
    let mut dice = Dice(11);
    let options = SessionOptions {
        allowed_tools: vec!["Bash".to_owned(), "Edit".to_owned(), "Read".to_owned()],
        ..SessionOptions::default()
    };
    let mut stronger = 0;
    for _ in 0..2000 {
        let mut policies = [policy(&mut dice), policy(&mut dice), policy(&mut dice)];
        for policy in &mut policies {
            policy.set_mode(Mode::ALL[dice.below(4)]);
        }
        let [mut own, caller, nested] = policies;
        // A mode that was set for all does not change that of the caller.
        own.override_mode(Mode::Approve);
        let caller = caller.restricted_by(nested);
        let subject = subject(&mut dice);
        let none = SessionOptions::default();
        let both = own.with_caller(&caller, Some(&none));
        let verdict = both.judge_in(&subject, &options).effect;
        let singles = [own.judge_in(&subject, &options), caller.judge(&subject)];
        assert_eq!(Some(verdict), singles.iter().map(|one| one.effect).max());
        stronger += usize::from(singles[1].effect > singles[0].effect);
        assert_eq!(both.with_caller(&caller, Some(&none)), both);
    }
    assert!(stronger > 100, "{stronger}");
}

#[test]
fn caller_revokes_what_allows_more() {
    let mut own = Policy::from(Mode::Ask);
    own.set_always(true);
    own.set_unanswered_allows(true);
    let both = own.with_caller(&Policy::from(Mode::Deny), None);
    assert!(!both.prefers_always());
    assert_eq!(both.unanswered(), Effect::Deny);
    assert_eq!(
        both.summary(),
        "permissions \"ask\" and permissions \"deny\""
    );
    let approving = own.with_caller(&Policy::from(Mode::Approve), None);
    assert!(!approving.prefers_always());
    let plain = Policy::from(Mode::Ask);
    assert_eq!(plain.with_caller(&Policy::from(Mode::Approve), None), plain);
}

#[test]
fn equal_policy_of_a_caller_does_not_get_the_tool_lists_of_the_session() {
    let own = Policy::from(Mode::Deny);
    let options = SessionOptions {
        allowed_tools: vec!["Edit".to_owned()],
        ..SessionOptions::default()
    };
    let edit = file("edit", "a", "/");
    assert_eq!(own.judge_in(&edit, &options).effect, Effect::Allow);
    assert_eq!(own.with_caller(&own, None), own);
    let both = own.with_caller(&own, Some(&SessionOptions::default()));
    assert_eq!(both.judge_in(&edit, &options).effect, Effect::Deny);
    let both = own.with_caller(&own, Some(&options));
    assert_eq!(both.judge_in(&edit, &options).effect, Effect::Allow);
}
