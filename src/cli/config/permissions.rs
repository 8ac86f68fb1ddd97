//! Conversion of permission tables to policies.

use super::fault::{ConfigFault, KeyPath, PathStep};
use super::file::{AgentPermissions, PermissionTable, RuleTable};
use super::values::Texts;
use acpipe_policy::{Effect, Mode, PRESETS, Policy, Preset, Rule, unknown};

/// Adds a table of permissions to a policy: its rules are added, and its default replaces that of the
/// policy. `label` is the prefix of the definition in verdicts, such as `agent "reviewer": `.
///
/// # Errors
/// A value is not valid; the path is relative to the table.
pub fn apply(table: &PermissionTable, policy: &mut Policy, label: &str) -> Result<(), ConfigFault> {
    if table.default.is_some() && table.preset.is_some() {
        return Err(not_both("default", "preset"));
    }
    if let Some(mode) = table.default {
        policy.set_mode(mode);
        policy.set_label(label);
    }
    if let Some(preset) = table.preset {
        policy.set_preset(preset.0);
        policy.set_label(label);
    }
    if let Some(always) = table.always {
        policy.set_always(always);
    }
    if let Some(answer) = table.unanswered {
        policy.set_unanswered_allows(Effect::from(answer) == Effect::Allow);
    }
    each(table.tools.as_ref(), "tools", |name| {
        if name.is_empty() || name.contains(['*', '(']) {
            return Err(format!(
                "{name:?} is not a valid tool name; it must not be empty or contain * or ("
            ));
        }
        policy.declare(name);
        Ok(())
    })?;
    let lists = [
        ("disallowed_tools", &table.disallowed_tools, Effect::Deny),
        ("allowed_tools", &table.allowed_tools, Effect::Allow),
    ];
    for (list, entries, effect) in lists {
        let title = format!("{label}{list}");
        each(entries.as_ref(), list, |entry| {
            policy.add_listed(entry, &title, effect)
        })?;
    }
    for (n, table) in table.rules.iter().flatten().enumerate() {
        let path = KeyPath::of(&["rules"]).then(PathStep::Index(n));
        let rule = rule(table, n + 1, policy, label).map_err(|fault| fault.below(&path))?;
        policy.add(rule);
    }
    Ok(())
}

/// Returns the permissions of an agent as a table.
///
/// # Errors
/// The name is neither a mode nor a preset.
pub fn table_of(permissions: &AgentPermissions) -> Result<PermissionTable, ConfigFault> {
    let name = match permissions {
        AgentPermissions::Named(name) => name,
        AgentPermissions::Table(table) => return Ok((**table).clone()),
    };
    let mode = Mode::ALL.into_iter().find(|mode| mode.name() == name);
    let preset = Preset::named(name).map(super::values::PresetName);
    if mode.is_none() && preset.is_none() {
        let modes = Mode::ALL.map(Mode::name).into_iter();
        let names: Vec<&str> = modes
            .chain(PRESETS.iter().map(|preset| preset.name))
            .collect();
        let why = unknown("mode or preset", name, &names);
        return Err(ConfigFault::new(KeyPath::default(), why));
    }
    Ok(PermissionTable {
        default: mode,
        preset,
        ..PermissionTable::default()
    })
}

/// Passes each string of a key to `take`.
pub fn each(
    texts: Option<&Texts>,
    key: &str,
    mut take: impl FnMut(&str) -> Result<(), String>,
) -> Result<(), ConfigFault> {
    let path = KeyPath::of(&[key]);
    match texts {
        None => Ok(()),
        Some(Texts::One(text)) => take(text).map_err(|why| ConfigFault::new(path, why)),
        Some(Texts::Many(texts)) => texts.iter().enumerate().try_for_each(|(n, text)| {
            take(text).map_err(|why| ConfigFault::new(path.then(PathStep::Item(n)), why))
        }),
    }
}

/// Creates the fault of two keys that exclude each other.
pub fn not_both(one: &str, other: &str) -> ConfigFault {
    let why = format!("cannot be combined with {one}; remove one of them");
    ConfigFault::new(KeyPath::of(&[other]), why)
}

fn rule(
    table: &RuleTable,
    number: usize,
    policy: &Policy,
    label: &str,
) -> Result<Rule, ConfigFault> {
    let name = match table.name.as_deref() {
        None => format!("{label}rule {number}"),
        Some("") => {
            let why = "the name of a rule must not be empty";
            return Err(ConfigFault::new(KeyPath::of(&["name"]), why));
        }
        Some(name) => format!("{label}rule {name:?}"),
    };
    let whole = |why: &str| ConfigFault::new(KeyPath::default(), why);
    let effect = table.effect.ok_or_else(|| {
        whole("the rule has no effect; add effect = \"allow\", \"ask\" or \"deny\"")
    })?;
    let conditions = [
        ("kind", &table.kind),
        ("tool", &table.tool),
        ("title", &table.title),
        ("path", &table.path),
        ("command", &table.command),
    ];
    for (key, texts) in [("without", &table.without)].iter().chain(&conditions) {
        if texts.as_ref().is_some_and(Texts::is_empty) {
            let why = "must not be an empty list; an empty list matches nothing";
            return Err(ConfigFault::new(KeyPath::of(&[key]), why));
        }
    }
    let mut rule = Rule::new(name, effect);
    for (key, texts) in conditions {
        each(texts.as_ref(), key, |text| match key {
            "kind" => rule.kind(text),
            "tool" => rule.tool(text, policy.names()),
            "title" => rule.title(text),
            "path" => rule.path(text, policy.home()),
            _ => rule.command(text),
        })?;
    }
    each(table.without.as_ref(), "without", |option| {
        rule.without(option)
    })?;
    if rule.is_empty() {
        let why = format!(
            "the rule has no condition; add at least one of {}",
            conditions.map(|(key, _)| key).join(", ")
        );
        return Err(whole(&why));
    }
    rule.check().map_err(|why| whole(&why))?;
    Ok(rule)
}
