//! Tests of what is hidden.

use super::*;

#[test]
fn text_that_looks_like_a_secret_is_hidden() {
    let cases = [
        (
            "key sk-ant-api03-AbCdEf0123456789, ok",
            "key sk-[hidden], ok",
        ),
        ("ghp_0123456789abcdefABCDEF", "ghp_[hidden]"),
        (
            "(github_pat_11ABCDE_0123456789abc)",
            "(github_pat_[hidden])",
        ),
        ("/AKIAIOSFODNN7EXAMPLE/", "/AKIA[hidden]"),
        ("ya29.a0AfH6SMBx_0123456789", "ya29.[hidden]"),
        ("jwt=eyJhbGciOiJIUzI1NiJ9.eyJzdWIi.c2ln", "jwt=eyJ[hidden]"),
        (
            "Authorization: Bearer abc.DEF-123",
            "Authorization: Bearer [hidden]",
        ),
        (
            "authorization: basic dXNlcjpwYXNz=",
            "authorization: basic [hidden]",
        ),
        (
            "Authorization: ApiKey abc.DEF-123, Proxy-Authorization: Token abc.DEF-123",
            "Authorization: [hidden], Proxy-Authorization: [hidden]",
        ),
        (
            r#"{"apiKey":"abcdef","a":1}"#,
            r#"{"apiKey":"[hidden]","a":1}"#,
        ),
        (
            r#"{\"api_key\": \"abcdef\"}"#,
            r#"{\"api_key\": \"[hidden]\"}"#,
        ),
        (
            "ANTHROPIC_API_KEY=päßwörd x",
            "ANTHROPIC_API_KEY=[hidden] x",
        ),
        ("X-Api-Key: abcdef", "X-Api-Key: [hidden]"),
        ("--token abcdef --x", "--token [hidden] --x"),
        (
            r#"["--auth-token", "abcdef"]"#,
            r#"["--auth-token", "[hidden]"]"#,
        ),
        ("?access_token=abcdef&b=1", "?access_token=[hidden]&b=1"),
        (
            "https://host/?a=1&key=abcdef",
            "https://host/?a=1&key=[hidden]",
        ),
        ("https://me:hunter2@host/x", "https://me:[hidden]@host/x"),
        (
            "SSHPASS=hunter2 MYSQL_PWD=hunter2",
            "SSHPASS=[hidden] MYSQL_PWD=[hidden]",
        ),
        (
            "password=first1 and secret=second",
            "password=[hidden] and secret=[hidden]",
        ),
        // Cut by acpipe.
        (
            "sk-ant-ap\u{2026} (9 bytes)",
            "sk-[hidden]\u{2026} (9 bytes)",
        ),
        ("Bearer a1\u{2026}", "Bearer [hidden]\u{2026}"),
        ("https://me:hunt\u{2026}", "https://me:[hidden]\u{2026}"),
        (
            "password=fi\u{2026} (9 bytes)",
            "password=[hidden] (9 bytes)",
        ),
    ];
    for (text, want) in cases {
        assert_eq!(hide(text), want);
    }
}

#[test]
fn private_keys_and_tokens_of_services_are_hidden() {
    let cases = [
        (
            "SG.aBcDeFgHiJkLmNoPqRsTuV.aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789aBcDeFg,",
            "SG.[hidden],",
        ),
        ("pypi-AgEIcHlwaS5vcmcCJDAxMjM0NTY3LTg5YWI", "pypi-[hidden]"),
        (
            "AGE-SECRET-KEY-1QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3J",
            "AGE-SECRET-KEY-1[hidden]",
        ),
        (
            "https://hooks.slack.com/services/T0ABCDEFG/B0ABCDEFG/abcdefghijklmnopqrstuvwx)",
            "https://hooks.slack.com/services/[hidden])",
        ),
        ("sid SK0123456789abcdef0123456789abcdef.", "sid SK[hidden]."),
        (
            "https://api.telegram.org/bot123456789:AAabcdefghijklmnopqrstuvwxyz0123456/x",
            "https://api.telegram.org/bot123456789:[hidden]/x",
        ),
        (
            "AccountName=x;AccountKey=abcdef0123==;EndpointSuffix=y",
            "AccountName=x;AccountKey=[hidden];EndpointSuffix=y",
        ),
        (
            "MC4CAQAwBQYDK2VwBCIEIAbCdEfGhIjKlMnOpQrStUvWxYz",
            "MC4CAQAwBQYDK2Vw[hidden]",
        ),
        (
            "a\n-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIAbCdEfG\n-----END PRIVATE KEY-----\nb",
            "a\n-----BEGIN PRIVATE KEY-----[hidden]-----END PRIVATE KEY-----\nb",
        ),
        (
            r#"{"key":"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\nabcdef\n"}"#,
            r#"{"key":"-----BEGIN OPENSSH PRIVATE KEY-----[hidden]"}"#,
        ),
        (
            r#"{"private_key": "-----BEGIN PRIVATE KEY-----\nAbCdEfGhIjKlMnOpQrStUvWx\n-----END PRIVATE KEY-----\n"}"#,
            r#"{"private_key": "-----BEGIN PRIVATE KEY-----[hidden]-----END PRIVATE KEY-----\n"}"#,
        ),
        (
            r#"{\"key\":\"-----BEGIN EC PRIVATE KEY-----\\nMHcCAQEEIAbCdEfGhIjKlMn\"}"#,
            r#"{\"key\":\"-----BEGIN EC PRIVATE KEY-----[hidden]\"}"#,
        ),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123\n\n\
             abcdefghijklmnopqrstuvwxyz01\nabc=\n-----END RSA PRIVATE KEY-----",
            "-----BEGIN RSA PRIVATE KEY-----[hidden]-----END RSA PRIVATE KEY-----",
        ),
    ];
    for (text, want) in cases {
        assert_eq!(hide(text), want);
    }
}

#[test]
fn variables_hold_secrets_by_name_or_by_value() {
    for (name, value) in [
        ("GITHUB_TOKEN", "x"),
        ("OPENAI_KEY", "x"),
        ("openai_api_key", "x"),
        ("GITHUB_PAT", "x"),
        ("DB_PASSWORD", "1"),
        ("SENTRY_DSN", "x"),
        ("MYSQL_PWD", "x"),
        ("REDISPWD", "x"),
        ("SSHPASS", "x"),
        ("MY_PASSCODE", "x"),
        ("HTTPS_PROXY", "me:hunter2@proxy:8080"),
        ("BASE_URL", "htp:/me:hunter2@host"),
        ("DATABASE_URL", "postgres://me:hunter2@host/db"),
        ("EXTRA_ARGS", "--token abcdef1"),
        ("A_URL", "https://qJ7vR2mX@host"),
        ("ANYTHING", "https://qJ7vR2mX@host/1"),
        ("API_TOKENS", "x"),
        ("MY_PASSWORDS", "x"),
        ("ANYTHING", "ghp_0123456789abcdefABCDEF"),
    ] {
        assert!(is_secret(name, value), "{name}");
    }
    for (name, value) in [
        ("TOKEN", ""),
        ("PATH", "/usr/bin:/bin"),
        ("PWD", "/home/me"),
        ("OLDPWD", "/home/me"),
        ("INIT_PWD", "/home/me"),
        ("SSH_ASKPASS", "/usr/bin/ask"),
        ("COMPASS", "x"),
        ("ALLOW_BYPASS", "x"),
        ("SSH_AUTH_SOCK", "/run/agent"),
        ("MAX_OUTPUT_TOKENS", "32000"),
        ("MAX_OUTPUT_TOKENS", "32k"),
        ("DATABASE_URL", "postgres://postgres@host/db"),
        ("ORIGIN_URL", "ssh://git@host/r"),
        ("MONKEY", "x"),
        ("RUST_LOG", "debug"),
        ("HTTPS_PROXY", "http://proxy:8080"),
    ] {
        assert!(!is_secret(name, value), "{name}");
    }
}

#[test]
fn ordinary_text_is_not_hidden() {
    let texts = [
        "task-runner-of-many-words",
        "sk-short",
        "max_tokens=100000 inputTokens: 123456",
        "the token was refused",
        "a bearer authentication is needed",
        "token: none",
        "https://host:8080/a@b",
        "see ://",
        "ends in token=",
        "OLDPWD=/home/me COMPASS=north-west PASS: all of them",
        "a secret",
        "é😀 unicode \u{2028}",
        "",
    ];
    for text in texts {
        assert!(
            matches!(hide(text), Cow::Borrowed(same) if same == text),
            "{text}"
        );
    }
}

#[test]
fn variables_of_acpipe_s_environment_are_known_by_their_names() {
    let names = [
        "OPENAI_KEY",
        "GITHUB_PAT",
        "DB_PASS",
        "GPG_PASSPHRASE",
        "SENTRY_DSN",
        "AZURE_KEYS",
        "MY_TOKEN",
    ];
    let variable = |(n, name): (usize, &&str)| ((*name).to_owned(), Some(format!("hunter-{n}")));
    let mut environment: Variables = names.iter().enumerate().map(variable).collect();
    let other = [
        ("LANG", "hunter-x"),
        ("DATABASE_URL", "postgres://me:p%40ssword@host/db"),
        (
            "OTEL_EXPORTER_OTLP_HEADERS",
            "x-team=collector-1,x=collector-2,authorization=Bearer%20collector%2D3",
        ),
        (
            "MY_HEADERS",
            "Authorization: Bearer of-headers\nX: Basic dXNlcjpvZi1iYXNpYw==",
        ),
        ("MY_COOKIE", "a=of-cookie; b=1"),
        ("MY_AUTH", "user:of-login"),
        ("OTHER_AUTH", "Bearer of-scheme"),
        ("MY_DSN", "https://of-user@host/1"),
    ];
    for (name, value) in other {
        environment
            .0
            .insert(name.to_owned(), Some(value.to_owned()));
    }
    let secrets = Secrets::of_environment(environment);
    for (n, name) in names.iter().enumerate() {
        assert_eq!(secrets.hide(&format!("hunter-{n}.")), "[hidden].", "{name}");
    }
    assert_eq!(secrets.hide("hunter-x"), "hunter-x");
    assert_eq!(secrets.hide("p@ssword p%40ssword"), "[hidden] [hidden]");
    for part in [
        "collector-1",
        "collector-2",
        "collector-3",
        "of-headers",
        "of-basic",
        "of-cookie",
        "of-login",
        "of-scheme",
        "of-user",
    ] {
        assert_eq!(secrets.hide(&format!("host {part}.")), "host [hidden].");
    }
}

#[test]
fn known_values_are_hidden_in_every_form() {
    let secrets = Secrets::default();
    let value = "a\"b\\c/gehe\u{e9}m \u{1f600}-d";
    secrets.add_values([value, "line one\nline two\n\nx", "line one and more"]);
    let once = serde_json::json!(value).to_string();
    let twice = serde_json::json!(once).to_string();
    let python = once
        .replace('\u{e9}', "\\u00e9")
        .replace('\u{1f600}', "\\ud83d\\ude00");
    let repr = python.replace("\\u00e9", "\\xe9");
    let php = python.replace('/', "\\/");
    let mut coded = Vec::new();
    for before in ["", "u", "us", "user:"] {
        let text = format!("{before}{value}");
        coded.push(base64::Engine::encode(
            &base64::prelude::BASE64_STANDARD,
            &text,
        ));
        coded.push(base64::Engine::encode(
            &base64::prelude::BASE64_URL_SAFE,
            &text,
        ));
    }
    for text in coded {
        let hidden = secrets.hide(&text).into_owned();
        assert!(hidden.len() < 20, "{text}: {hidden}");
    }
    let in_url: Vec<String> = value.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let in_url = in_url.concat();
    let octal: Vec<String> = value.bytes().map(|byte| format!("\\{byte:03o}")).collect();
    for text in [
        value.to_owned(),
        once,
        twice,
        serde_json::json!(python).to_string(),
        python,
        php,
        in_url.replace('%', "%25"),
        in_url.replace("%20", "+"),
        in_url,
        format!("{value:?}"),
        repr,
        value.replace('\u{e9}', "%E9"),
        octal.concat(),
    ] {
        let hidden = secrets.hide(&text);
        assert_eq!(hidden.trim_matches(['"', '\\']), HIDDEN, "{text}");
    }
    let text = format!("{}{value}", "x".repeat(50));
    let mime = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, text);
    for line_break in ["\n", "\r\n"] {
        let broken = format!("{}{line_break}{}", &mime[..76], &mime[76..]);
        assert!(secrets.hide(&broken).len() < 90, "{broken}");
    }
    assert_eq!(secrets.hide("line two; x"), "[hidden]; x");
    assert_eq!(
        secrets.hide("line one and more."),
        "[hidden].",
        "the longest first"
    );
}

/// Services take a key as the user, with an empty password or a word that stands for none.
#[test]
fn key_in_place_of_a_user_and_parts_of_values_are_known() {
    let code = |text: &str| base64::Engine::encode(&base64::prelude::BASE64_STANDARD, text);
    for (name, value) in [
        ("X", "https://qJ7vR2mX:@api.h/v1".to_owned()),
        ("X", "https://qJ7vR2mX:x-oauth-basic@h".to_owned()),
        ("X", "https://qJ7vR2mX@h".to_owned()),
        ("X_URL", "qJ7vR2mX:@h".to_owned()),
        ("X_AUTH", "qJ7vR2mX:".to_owned()),
        ("X_AUTH", code("u:qJ7vR2mX")),
        ("X_AUTH", code("qJ7vR2mX:")),
        (
            "X_HEADERS",
            format!("Authorization=Basic {}", code("qJ7vR2mX:")),
        ),
        ("X_HEADERS", r#"{"X-A":"qJ7vR2mX"}"#.to_owned()),
        ("X_TOKEN", "'qJ7vR2mX'".to_owned()),
    ] {
        let secrets = Secrets::default();
        let variable = [(name.to_owned(), Some(value.clone()))];
        secrets.add_variables(&variable.into_iter().collect());
        assert_eq!(
            secrets.hide("key qJ7vR2mX"),
            "key [hidden]",
            "{name}={value}"
        );
    }
    let secrets = Secrets::default();
    let url = "http://h/?a=1;k=qJ7vR2mX&b=2";
    secrets.add_servers(&servers(
        serde_json::json!({"name": "a", "type": "http", "url": url, "headers": []}),
    ));
    assert_eq!(secrets.hide("key qJ7vR2mX"), "key [hidden]");
    assert_eq!(hide("https://qJ7vR2mX:@h/"), "https://[hidden]:@h/");
}

#[test]
fn handles_of_clients_hide_the_same_and_displace_nothing_of_others() {
    let own = Secrets::default();
    let (one, other) = (own.of_client(), own.of_client());
    own.add_values(["hunter-own"]);
    one.add_values(["hunter-one"]);
    for n in 0..8 {
        let value = (0..40_000).map(|line| format!("flood{n}-{line:05}\n"));
        other.add_values([value.collect::<String>().as_str()]);
    }
    drop(one);
    for secrets in [&own, &other] {
        assert_eq!(secrets.hide("hunter-own, hunter-one"), "[hidden], [hidden]");
    }
}

#[test]
fn name_of_a_variable_is_shown_unless_it_may_be_the_key_itself() {
    for name in ["MY_KEY", "MINE", "KEY_2", "my_key"] {
        assert_eq!(shown_variable(name), name);
    }
    for name in [
        "sk-ant-api03-AbCdEf0123456789",
        "AKIAIOSFODNN7EXAMPLE",
        "AbCdEfGhIjKl",
        "3b0c44298fc1c149",
        "hunter",
        "A B",
        "",
    ] {
        assert_eq!(shown_variable(name), HIDDEN, "{name}");
    }
}

#[test]
fn hiding_twice_changes_nothing() {
    let once = hide("password=hunter-22 Bearer abc.DEF-123").into_owned();
    assert_eq!(hide(&once), once);
}

fn servers(server: serde_json::Value) -> Vec<acpipe_protocol::wire::McpServer> {
    vec![serde_json::from_value(server).unwrap()]
}

#[test]
fn secrets_of_mcp_servers_are_hidden_but_not_their_names() {
    let started = serde_json::json!({"name": "the-server", "command": "the-command",
        "env": [{"name": "THE_NAME", "value": "hunter-1"}], "args": ["the-host", "${NONE:-hunter-2}"]});
    let reached = serde_json::json!({"name": "the-server", "type": "http",
        "url": "https://hunter-1@the-host/?q=hunter-2"});
    let headers = serde_json::json!({"name": "the-server", "type": "sse", "url": "https://the-host",
        "headers": {"X-Header": "Token hunter-1", "Y": "bearer ${NONE:-hunter-2}"}});
    let basic = serde_json::json!({"name": "the-server", "type": "http", "url": "https://the-host",
        "headers": {"X-Header": "Basic dXNlcjpodW50ZXItMQ==", "Y": "hunter-2"}});
    let parts = serde_json::json!({"name": "the-server", "type": "http", "url": "https://the-host",
        "headers": {"Cookie": "a=b; s=hunter-1", "X": "Token token=\"hunter-2\""}});
    for server in [started, reached, headers, basic, parts] {
        let secrets = Secrets::default();
        secrets.add_servers(&servers(server.clone()));
        let text = "THE_NAME hunter-1, the-server the-host the-command X-Header hunter-2";
        let want = "THE_NAME [hidden], the-server the-host the-command X-Header [hidden]";
        assert_eq!(secrets.hide(text), want, "{server}");
    }
}

/// A variable of acpipe's own environment may hold a whole header; options of a program in `env` are no header.
#[test]
fn variables_in_headers_of_mcp_servers_are_read_as_headers() {
    let variable = [("LINE".to_owned(), Some("ApiKey hunter-1".to_owned()))];
    let secrets = Secrets::of_environment(variable.into_iter().collect());
    secrets.add_servers(&servers(serde_json::json!({
        "name": "a", "type": "http", "url": "https://h", "headers": {"X": "${LINE}"}})));
    secrets.add_servers(&servers(serde_json::json!({
        "name": "b", "command": "b", "args": [], "env": {"OPTIONS": "a=b,language=english"}})));
    assert_eq!(secrets.hide("hunter-1 english"), "[hidden] english");
}
