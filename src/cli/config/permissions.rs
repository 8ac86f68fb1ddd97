//! The table `[permissions]` of the configuration.

use super::table::{ConfigError, Table};
use crate::core::policy::{Effect, Mode, PRESETS, Policy, Preset, Rule, unknown};

pub const KEYS: &[&str] = &[
    "default",
    "preset",
    "always",
    "unanswered",
    "allowed_tools",
    "disallowed_tools",
    "tools",
    "rules",
];

const RULE_KEYS: &[&str] = &[
    "name", "effect", "without", "kind", "tool", "title", "path", "command",
];

pub fn read(table: &Table<'_, '_>, policy: &mut Policy) -> Result<(), ConfigError> {
    table.not_both("default", "preset")?;
    if let Some(mode) = table.text("default", |name| {
        one_of("mode", name, &Mode::ALL, Mode::name)
    })? {
        policy.set_mode(mode);
    }
    let preset = |name: &str| {
        let names = PRESETS.iter().map(|preset| preset.name);
        Preset::named(name).ok_or_else(|| unknown("preset", name, &names.collect::<Vec<_>>()))
    };
    if let Some(preset) = table.text("preset", preset)? {
        policy.set_preset(preset);
    }
    if let Some(always) = table.bool("always")? {
        policy.set_always(always);
    }
    let answers = [Effect::Deny, Effect::Allow];
    if let Some(effect) = table.text("unanswered", |name| {
        one_of("answer", name, &answers, Effect::name)
    })? {
        policy.set_unanswered_allows(effect == Effect::Allow);
    }
    table.texts("tools", |name| {
        if name.is_empty() || name.contains(['*', '(']) {
            return Err(format!(
                "{name:?} is not a valid tool name; it must not be empty or contain * or ("
            ));
        }
        policy.declare(name);
        Ok(())
    })?;
    for (list, effect) in [
        ("disallowed_tools", Effect::Deny),
        ("allowed_tools", Effect::Allow),
    ] {
        table.texts(list, |entry| policy.add_listed(entry, list, effect))?;
    }
    for (n, (at, table)) in table.tables("rules", RULE_KEYS)?.iter().enumerate() {
        let rule = rule(table, n + 1, *at, policy)?;
        policy.add(rule);
    }
    Ok(())
}

fn rule(
    table: &Table<'_, '_>,
    number: usize,
    at: usize,
    policy: &Policy,
) -> Result<Rule, ConfigError> {
    let name = |name: &str| match name {
        "" => Err("the name of a rule must not be empty".to_owned()),
        name => Ok(format!("rule {name:?}")),
    };
    let label = table
        .text("name", name)?
        .unwrap_or_else(|| format!("rule {number}"));
    let effect = table.text("effect", |name| {
        one_of("effect", name, &Effect::ALL, Effect::name)
    })?;
    let effect = effect.ok_or_else(|| {
        table.wrong(
            at,
            "the rule has no effect; add effect = \"allow\", \"ask\" or \"deny\"",
        )
    })?;
    let conditions = &RULE_KEYS[3..];
    RULE_KEYS[2..]
        .iter()
        .try_for_each(|key| table.not_empty(key))?;
    let mut rule = Rule::new(label, effect);
    table.texts("kind", |kind| rule.kind(kind))?;
    table.texts("tool", |name| rule.tool(name, policy.names()))?;
    table.texts("title", |pattern| rule.title(pattern))?;
    table.texts("path", |pattern| rule.path(pattern, policy.home()))?;
    table.texts("command", |pattern| rule.command(pattern))?;
    table.texts("without", |option| rule.without(option))?;
    if rule.is_empty() {
        let why = format!(
            "the rule has no condition; add at least one of {}",
            conditions.join(", ")
        );
        return Err(table.wrong(at, &why));
    }
    rule.check().map_err(|why| table.wrong(at, &why))?;
    Ok(rule)
}

/// Returns the item of the given name, or an error that lists the known names.
fn one_of<T: Copy>(
    what: &str,
    name: &str,
    all: &[T],
    called: impl Fn(T) -> &'static str,
) -> Result<T, String> {
    let found = all.iter().copied().find(|one| called(*one) == name);
    found.ok_or_else(|| {
        let known: Vec<&str> = all.iter().copied().map(called).collect();
        unknown(what, name, &known)
    })
}
