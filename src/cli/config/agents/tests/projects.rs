//! Tests of the project's file: it restricts, and needs trust for everything else.

use super::*;
use crate::cli::config::tests_page::subject;
use acpipe_policy::Effect;
use acpipe_protocol::wire::SessionOptions;

/// Agent of an untrusted project's file with these keys.
fn of_project(keys: &str, is_trusted: bool) -> ConfiguredAgent {
    let user = "[agents.mine]\nuse = \"claude\"\ntools = [\"Bash\"]";
    let text = format!("[agents.p]\n{keys}\n[agents.q]\nuse = \"claude\"\nprompt = \"q\"");
    let config = read(user, Some((&text, is_trusted))).unwrap();
    config.agent("p").unwrap().clone()
}

#[test]
fn key_that_may_loosen_locks_the_agent_until_the_file_is_trusted() {
    for (keys, does) in [
        ("command = \"c\"", "sets command"),
        ("command = \"c\"\nargs = []", "sets command"),
        ("use = \"claude\"\nenv = { A = \"b\" }", "sets env"),
        ("use = \"claude\"\ncwd = \"sub\"", "sets cwd"),
        ("use = \"claude\"\nprotocol = \"acp\"", "sets protocol"),
        (
            "use = \"claude\"\nmode = \"bypassPermissions\"",
            "sets mode",
        ),
        ("use = \"claude\"\ntools = [\"Bash\"]", "sets tools"),
        (
            "use = \"claude\"\nmcp_servers.s = { command = \"x\" }",
            "sets mcp_servers",
        ),
        (
            "use = \"claude\"\noptions.effort = \"high\"",
            "sets options",
        ),
        ("use = \"claude\"\ntimeout = \"1h\"", "sets timeout"),
        (
            "use = \"claude\"\nchild_per_session = true",
            "sets child_per_session",
        ),
        ("extends = \"mine\"", "extends your agent \"mine\""),
    ] {
        let want = format!(
            "agent \"p\" of /p/.acpipe.toml {does}; review the file, then run: acpipe agents trust"
        );
        assert_eq!(
            of_project(keys, false).locked.as_deref(),
            Some(want.as_str()),
            "{keys}"
        );
        assert_eq!(of_project(keys, true).locked, None, "{keys}");
    }
}

#[test]
fn agent_that_only_restricts_or_describes_is_not_locked() {
    for keys in [
        "use = \"claude\"\nprompt = \"p\"\ndescription = \"d\"\ntags = []\nmodel = \"m\"",
        "use = \"claude\"\ndisallowed_tools = [\"Bash\"]\npermissions = \"approve\"",
        "extends = \"claude\"",
        "extends = \"q\"",
    ] {
        assert_eq!(of_project(keys, false).locked, None, "{keys}");
    }
    assert_eq!(
        of_project("use = \"claude\"\ncwd = \"sub\"", true)
            .cwd
            .as_deref(),
        Some("/p/sub")
    );
}

#[test]
fn variant_of_a_locked_agent_is_locked() {
    let text = "[agents.a]\ncommand = \"c\"\n[agents.b]\nextends = \"a\"";
    let config = read("", Some((text, false))).unwrap();
    let reason = |name| config.agent(name).unwrap().locked.clone().unwrap();
    assert!(reason("a").starts_with("agent \"a\" of"));
    assert_eq!(reason("a"), reason("b"));
}

#[test]
fn agent_of_the_user_cannot_extend_one_of_the_project() {
    let project = "[agents.p]\nuse = \"claude\"";
    let error = read("[agents.a]\nextends = \"p\"", Some((project, true))).unwrap_err();
    assert!(
        error
            .message
            .starts_with("/u.toml:2:11: agents.a.extends: \"p\" is not"),
        "{error}"
    );
    let error = read("agent = \"p\"", Some((project, true))).unwrap_err();
    assert!(
        error
            .message
            .starts_with("/u.toml:1:9: agent: \"p\" is not"),
        "{error}"
    );
}

#[test]
fn permissions_of_a_project_only_restrict() {
    let user = "[permissions]\ndefault = \"reads\"\ndisallowed_tools = [\"Bash(rm:*)\"]";
    let loose = "default = \"approve\"\nallowed_tools = [\"Bash\", \"Write\"]\nalways = true\nunanswered = \"allow\"";
    let strict = "default = \"deny\"\nallowed_tools = [\"Read\"]";
    for is_trusted in [false, true] {
        let text = |permissions: &str| {
            let agent = "[agents.p]\nuse = \"claude\"\n[agents.p.permissions]";
            format!("[permissions]\n{permissions}\n{agent}\n{permissions}")
        };
        let config = read(user, Some((&text(loose), is_trusted))).unwrap();
        let of_agent = policy_of_agent(&config.policy, config.agent("p").unwrap()).unwrap();
        let alone = read(user, None).unwrap().policy;
        for (verb, what) in [
            ("run", "rm x"),
            ("run", "ls"),
            ("write", "a"),
            ("read", "a"),
        ] {
            let subject = subject(verb, what, "/w");
            let want = alone.judge(&subject);
            assert_eq!(config.policy.judge(&subject), want, "{what}");
            assert_eq!(of_agent.judge(&subject), want, "{what}");
        }
        assert!(!of_agent.prefers_always());
        assert_eq!(of_agent.unanswered(), Effect::Deny);

        let config = read(user, Some((&text(strict), is_trusted))).unwrap();
        let of_agent = policy_of_agent(&config.policy, config.agent("p").unwrap()).unwrap();
        for (policy, by) in [
            (&config.policy, ".acpipe.toml: permissions \"deny\""),
            (&of_agent, ".acpipe.toml: permissions \"deny\""),
        ] {
            let write = policy.judge(&subject("write", "a", "/w"));
            assert_eq!((write.effect, write.by.as_str()), (Effect::Deny, by));
            let read = policy.judge(&subject("read", "a", "/w"));
            assert_eq!(read.effect, Effect::Allow);
        }
    }
    let text = "[agents.p]\nuse = \"claude\"\npermissions = \"deny\"";
    let config = read(user, Some((text, false))).unwrap();
    let policy = policy_of_agent(&config.policy, config.agent("p").unwrap()).unwrap();
    let by = policy.judge(&subject("read", "a", "/w")).by;
    assert_eq!(by, "agent \"p\": permissions \"deny\"");
}

#[test]
fn tool_list_does_not_loosen_the_permissions_of_an_untrusted_project() {
    let bash = vec!["Bash".to_owned()];
    let options = SessionOptions {
        allowed_tools: bash.clone(),
        ..SessionOptions::default()
    };
    let run = subject("run", "rm x", "/w");
    for (is_trusted, want) in [(false, Effect::Deny), (true, Effect::Allow)] {
        for project in [
            "[permissions]\ndefault = \"deny\"\n[agents.p]\nuse = \"claude\"",
            "[agents.p]\nuse = \"claude\"\npermissions = \"deny\"",
        ] {
            let mut config = read("", Some((project, is_trusted))).unwrap();
            config.policy.set_lists(&bash, &[]);
            let policy = policy_of_agent(&config.policy, config.agent("p").unwrap()).unwrap();
            for list in [&options, &SessionOptions::default()] {
                assert_eq!(policy.judge_in(&run, list).effect, want, "{project}");
            }
        }
    }
}

#[test]
fn default_of_a_project_may_name_your_agents_only_if_trusted() {
    let user =
        "agent = \"mine\"\n[agents.mine]\nuse = \"claude\"\n[agents.other]\nuse = \"claude\"";
    let own = "\n[agents.p]\ncommand = \"c\"";
    for (project, is_trusted, want, notes) in [
        ("", false, ("mine", "/u.toml:1"), 0),
        ("agent = \"other\"", false, ("mine", "/u.toml:1"), 1),
        ("agent = \"other\"", true, ("other", "/p/.acpipe.toml:1"), 0),
        ("agent = \"claude\"", false, ("mine", "/u.toml:1"), 1),
        ("agent = \"p\"", false, ("mine", "/u.toml:1"), 1),
    ] {
        let text = format!("{project}{own}");
        let config = read(user, Some((&text, is_trusted))).unwrap();
        let (name, place) = config.default_agent.unwrap();
        assert_eq!(
            (name.as_str(), place.as_str()),
            want,
            "{project} {is_trusted}"
        );
        assert_eq!(config.notes.len(), notes, "{project} {is_trusted}");
    }
    let config = read(user, Some(("agent = \"other\"", false))).unwrap();
    let note = "/p/.acpipe.toml sets your agent \"other\" as the default, without effect; review the file, then run: \
                    acpipe agents trust";
    assert_eq!(config.notes, [note]);
}

#[test]
fn default_of_an_untrusted_project_holds_only_without_one_of_the_user() {
    let text = "agent = \"p\"\n[agents.p]\nuse = \"claude\"";
    for (user, is_trusted, want) in [
        ("", false, ("p", true)),
        ("", true, ("p", false)),
        ("agent = \"claude\"", false, ("claude", false)),
        ("agent = \"claude\"", true, ("p", false)),
    ] {
        let config = read(user, Some((text, is_trusted))).unwrap();
        let name = config.default_agent.unwrap().0;
        assert_eq!((name.as_str(), config.is_default_untrusted), want, "{user}");
    }
}

#[test]
fn untrusted_project_cannot_use_a_built_in_agent_that_the_user_has_changed() {
    let user = "[agents.claude]\nextends = \"claude\"\npermissions = \"deny\"";
    for keys in ["use = \"claude\"", "extends = \"claude\""] {
        let text = format!("[agents.p]\n{keys}");
        let of_file = |is_trusted| {
            let config = read(user, Some((&text, is_trusted))).unwrap();
            config.agent("p").unwrap().locked.clone()
        };
        assert!(of_file(false).is_some(), "{keys}");
        assert_eq!(of_file(true), None, "{keys}");
    }
}

/// Every key that has effect without trust, with every kind of policy of the user: nothing is weaker than without the
/// file.
#[test]
fn no_key_of_an_untrusted_project_makes_the_users_policy_weaker() {
    let keys = [
        "prompt = \"p\"\ndescription = \"d\"\ntags = [\"t\"]\nmodel = \"m\"",
        "disallowed_tools = [\"Bash(ls:*)\"]",
        "permissions = \"approve\"",
        "permissions = \"maverick\"",
        "[agents.p.permissions]\ndefault = \"approve\"\nallowed_tools = [\"Bash\", \"deploy\"]\ntools = [\"deploy\"]\n\
         always = true\nunanswered = \"allow\"\n[[agents.p.permissions.rules]]\neffect = \"allow\"\ntitle = \"*\"",
    ];
    let general = [
        "",
        "[permissions]\ndefault = \"approve\"\nallowed_tools = [\"Bash\", \"deploy\"]\ntools = [\"deploy\"]\nalways = true\n\
         unanswered = \"allow\"\n[[permissions.rules]]\neffect = \"allow\"\ntitle = \"*\"\n",
        "[permissions]\npreset = \"discobot\"\n",
    ];
    let policies = [
        "default = \"approve\"",
        "default = \"reads\"",
        "default = \"ask\"",
        "default = \"deny\"",
        "preset = \"holodeck\"",
        "default = \"approve\"\ndisallowed_tools = [\"Bash(rm:*)\"]",
        "default = \"deny\"\nallowed_tools = [\"Bash(ls:*)\"]",
        "default = \"approve\"\nunanswered = \"deny\"\nalways = false",
    ];
    let calls = [
        ("run", "rm x"),
        ("run", "ls"),
        ("write", "a"),
        ("read", "a"),
        ("use", "deploy"),
        ("use", "WebFetch"),
    ];
    for policy in policies {
        let user = format!("agent = \"claude\"\n[permissions]\n{policy}");
        let alone = read(&user, None).unwrap();
        for (general, key) in general
            .iter()
            .flat_map(|g| keys.iter().map(move |k| (g, k)))
        {
            let text = format!("agent = \"p\"\n{general}[agents.p]\nuse = \"claude\"\n{key}");
            let config = read(&user, Some((&text, false))).unwrap();
            assert_eq!(config.default_agent, alone.default_agent, "{text}");
            let agent = config.agent("p").unwrap();
            let of_agent = policy_of_agent(&config.policy, agent).unwrap();
            for own in [&config.policy, &of_agent] {
                for (verb, what) in calls {
                    let subject = subject(verb, what, "/w");
                    let (with, without) = (own.judge(&subject), alone.policy.judge(&subject));
                    assert!(with.effect >= without.effect, "{policy}\n{text}\n{what}");
                }
                assert!(!own.prefers_always() || alone.policy.prefers_always());
                assert!(own.unanswered() >= alone.policy.unanswered());
            }
        }
    }
}
