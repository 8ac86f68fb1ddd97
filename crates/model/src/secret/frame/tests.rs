//! Tests of what is hidden in messages.

use super::*;

#[test]
fn secrets_do_not_stand_in_frames() {
    let secrets = Secrets::default();
    secrets.add_values(["hunter-1", "gehe\u{e9}m", "87654321"]);
    for (line, want) in [
        (r#"{"a":"is hunter-1"}"#, r#"{"a":"is [hidden]"}"#),
        (r#"{"a":"is h\u0075nter-1\n"}"#, r#"{"a":"is [hidden]\n"}"#),
        (
            r#"{"a":"{\"b\":\"gehe\\u00e9m\"}"}"#,
            r#"{"a":"{\"b\":\"[hidden]\"}"}"#,
        ),
        (r#"{"apiKey":"abcdef1"}"#, r#"{"apiKey":"[hidden]"}"#),
        (r#"{"api\u004bey":"ab\"cdef"}"#, r#"{"apiKey":"[hidden]"}"#),
        (r#"{"a":"plain"}"#, r#"{"a":"plain"}"#),
        (
            r#"{"a":"plain\n","b":"hunter"}"#,
            r#"{"a":"plain\n","b":"hunter"}"#,
        ),
        (r#"{"a":87654321}"#, r#"{"a":"[hidden]"}"#),
        (
            r#"{"pinToken":12345678,"b":1}"#,
            r#"{"b":1,"pinToken":"[hidden]"}"#,
        ),
        ("password=first1", "password=[hidden]"),
        (
            r#"{"id":1,"result":{"action": "accept","content":{"pin":"1234","n":7,"ok":true}}}"#,
            r#"{"id":1,"result":{"action":"accept","content":"[hidden]"}}"#,
        ),
        (
            r#"{"id":1,"result":{"\u0061ction":"accept","content":{"pin":"1234"}}}"#,
            r#"{"id":1,"result":{"action":"accept","content":"[hidden]"}}"#,
        ),
        (
            r#"{"id":1,"result":{"action":"decline","content":{"pin":"1234"}}}"#,
            r#"{"id":1,"result":{"action":"decline","content":"[hidden]"}}"#,
        ),
        (
            r#"{"id":1,"result":{"action":"typed","content":"1234","note":["n"]}}"#,
            r#"{"id":1,"result":{"action":"[hidden]","content":"[hidden]","[hidden]":"[hidden]"}}"#,
        ),
        (
            r#"[{"id":1,"result":{"action":{"action":"accept"},"values":{"pin":1234}}}]"#,
            r#"[{"id":1,"result":{"action":"[hidden]","[hidden]":"[hidden]"}}]"#,
        ),
        (
            r#"{"params":{"action":"click","content":"shown"}}"#,
            r#"{"params":{"action":"click","content":"shown"}}"#,
        ),
        (
            r#"{"env":{"A":"1"},"mcp":{"headers":[{"name":"N","value":"2"}]},"set":1}"#,
            r#"{"env":{"A":"[hidden]"},"mcp":{"headers":[{"name":"N","value":"[hidden]"}]},"set":1}"#,
        ),
        (
            r#"{"hunter-1":1,"a hunter-1":2,"b\n":3}"#,
            r#"{"[hidden]":1,"a [hidden]":2,"b\n":3}"#,
        ),
        (r#"{"hunter-1":1,"h\u0075nter-1":2}"#, r#"{"[hidden]":2}"#),
        (
            r#"{"87654321\n":1,"hunter-1\n":2}"#,
            r#"{"[hidden]\n":1,"[hidden]\n 1":2}"#,
        ),
        (
            r#"{"env":["A=1"],"set":{"A=1":"2","B":["3",{"C":4}]},"headers":"A: 1"}"#,
            r#"{"env":["[hidden]"],"set":{"A=[hidden]":"[hidden]","B":["[hidden]",{"C":"[hidden]"}]},"headers":"[hidden]"}"#,
        ),
        (
            r#"{"id":1,"params":{"set":{"A":"1"},"x":NaN}}"#,
            r#"{"id":1,"params":{"set":[hidden]"#,
        ),
        (
            r#"{"params":{"unset":{"A":"1"},env : [{"A":"1""#,
            r#"{"params":{"unset":[hidden]"#,
        ),
        (
            r#"text {"action":"accept","content":{"pin":"1"}"#,
            r#"text {"action":"accept","content":[hidden]"#,
        ),
        (
            "the environment: not set: content",
            "the environment: not set: content",
        ),
        (
            r#"{"updatedInput":{"questions":["Q"],"answers":{"Q":"1234"},"annotations":{"Q":{"notes":"n"}}}}"#,
            r#"{"updatedInput":{"questions":["Q"],"answers":{"Q":"[hidden]"},"annotations":{"Q":{"notes":"[hidden]"}}}}"#,
        ),
    ] {
        let read = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
        assert_eq!(
            read(&hide_in_frame(&secrets, line, Sender::Other)),
            read(want),
            "{line}"
        );
    }
}

#[test]
fn names_with_values_and_addresses_with_passwords_are_hidden() {
    for (line, want) in [
        (
            r#"{"params":{"unset":["A","B=1"]}}"#,
            r#"{"params":{"unset":["A","B=[hidden]"]}}"#,
        ),
        (
            r#"{"url":"htp:/u:1@h","baseUrl":"u:1@h","uri":"pkg:a/b@1","text":"a:b@c"}"#,
            r#"{"url":"htp:/u:[hidden]@h","baseUrl":"u:[hidden]@h","uri":"pkg:a/b@1","text":"a:b@c"}"#,
        ),
        (
            r#"{"args":["-e","A=1","--key","2","3"],"other":{"args":["A"]}}"#,
            r#"{"args":["-e","A=[hidden]","--key","[hidden]","3"],"other":{"args":["A"]}}"#,
        ),
        (r#"{"unset":["A=1""#, r#"{"unset":[hidden]"#),
    ] {
        let read = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
        assert_eq!(read(&without_members(line)), read(want), "{line}");
    }
}

#[test]
fn response_of_a_client_is_hidden_unless_it_answers_another_request() {
    let secrets = Secrets::default();
    for (line, want) in [
        (
            r#"{"id":1,"result":"1"}"#,
            r#"{"id":1,"result":"[hidden]"}"#,
        ),
        (
            r#"{"id":1,"result":{"x":"1"}}"#,
            r#"{"id":1,"result":"[hidden]"}"#,
        ),
        (
            r#"{"id":1,"result":{"content":{"pin":"1"}}}"#,
            r#"{"id":1,"result":"[hidden]"}"#,
        ),
        (
            r#"{"id":1,"result":{"action":"accept","content":{"1":true},"2":3}}"#,
            r#"{"id":1,"result":{"action":"accept","content":"[hidden]","[hidden]":"[hidden]"}}"#,
        ),
        (
            r#"{"id":1,"error":{"code":-1,"message":"1","data":{"x":"1"}}}"#,
            r#"{"id":1,"error":{"code":-1,"message":"[hidden]"}}"#,
        ),
        (
            r#"[{"id":1,"error":"1"},{"id":2,"result":{}}]"#,
            r#"[{"id":1,"error":"[hidden]"},{"id":2,"result":{}}]"#,
        ),
        (
            r#"{"id":1,"result":{"x":"1"#,
            r#"{"id":1,"result":[hidden]"#,
        ),
        (
            r#"{"id":1,"result":{"outcome":{"outcome":"selected","optionId":"o"}}}"#,
            r#"{"id":1,"result":{"outcome":{"outcome":"selected","optionId":"o"}}}"#,
        ),
        (
            r#"{"id":1,"result":{"content":"text"}}"#,
            r#"{"id":1,"result":{"content":"text"}}"#,
        ),
        (r#"{"id":1,"result":null}"#, r#"{"id":1,"result":null}"#),
        (
            r#"{"id":1,"method":"m","params":{"result":"1"}}"#,
            r#"{"id":1,"method":"m","params":{"result":"1"}}"#,
        ),
    ] {
        let read = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
        let shown = hide_in_frame(&secrets, line, Sender::Client);
        assert_eq!(read(&shown), read(want), "{line}");
    }
}

#[test]
fn members_of_logged_frames_are_hidden() {
    for (line, want) in [
        (r#"{"a":"env"}"#, r#"{"a":"env"}"#),
        (
            r#"{"method":"_x/y","params":{"env":{"A":"1"},"b":2}}"#,
            r#"{"method":"_x/y","params":{"env":{"A":"[hidden]"},"b":2}}"#,
        ),
        (
            r#"agent/updateEnvironment {"set":{"A":"1"}}"#,
            r#"agent/updateEnvironment {"set":{"A":"[hidden]"}}"#,
        ),
        (r#"{"env":{"A":"1","#, r#"{"env":[hidden]"#),
        (
            r#"{"result":{"action":"accept","content":{"pin":1234}}}"#,
            r#"{"result":{"action":"accept","content":"[hidden]"}}"#,
        ),
    ] {
        assert_eq!(without_members(line), want);
    }
}

#[test]
fn lists_and_objects_in_members_with_names_of_secrets_are_hidden() {
    let secrets = Secrets::default();
    for (line, want) in [
        (
            r#"{"apiKey":["a",{"b":5}]}"#,
            r#"{"apiKey":["[hidden]",{"b":"[hidden]"}]}"#,
        ),
        (
            r#"{"password" : {"value":"a","ok":true}}"#,
            r#"{"password":{"value":"[hidden]","ok":true}}"#,
        ),
        (r#"{"DB_PASS":[1234]}"#, r#"{"DB_PASS":["[hidden]"]}"#),
        (r#"{"api\u004bey":["a"]}"#, r#"{"apiKey":["[hidden]"]}"#),
        (
            r#"{"answers":["a",3]}"#,
            r#"{"answers":["[hidden]","[hidden]"]}"#,
        ),
        (
            r#"{"answers":[{"q":"x","a":"a"}],"annotations":["a"]}"#,
            r#"{"answers":[{"q":"[hidden]","a":"[hidden]"}],"annotations":["[hidden]"]}"#,
        ),
        (
            r#"{"annotations":[{"notes":"a"}]}"#,
            r#"{"annotations":[{"notes":"[hidden]"}]}"#,
        ),
        (
            r#"{"annotations":{"q":"a"}}"#,
            r#"{"annotations":{"q":"[hidden]"}}"#,
        ),
        (
            r#"{"annotations":{"audience":["user"],"priority":1}}"#,
            r#"{"annotations":{"audience":["user"],"priority":1}}"#,
        ),
        (
            r#"{"annotations":[{"type":"url_citation","url":"b"}]}"#,
            r#"{"annotations":[{"type":"url_citation","url":"b"}]}"#,
        ),
        (
            r#"{"properties":{"password":{"type":"string","title":"b","minLength":4,"default":"a"}}}"#,
            r#"{"properties":{"password":{"type":"string","title":"b","minLength":4,"default":"[hidden]"}}}"#,
        ),
        (
            r#"{"password":{"type":"string","title":{"value":"a"}}}"#,
            r#"{"password":{"type":"string","title":{"value":"[hidden]"}}}"#,
        ),
        (r#"{"apiKey":["a","#, r#"{"apiKey":[hidden]"#),
        (r#"{"args":["-e","N=a","#, r#"{"args":[hidden]"#),
        (
            r#"{"tokens":[1,2],"keys":["b"]}"#,
            r#"{"tokens":[1,2],"keys":["b"]}"#,
        ),
    ] {
        let read = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
        let recorded = hide_in_frame(&secrets, line, Sender::Other);
        assert_eq!(read(&recorded), read(want), "{line}");
        assert_eq!(read(&without_members(line)), read(want), "{line}");
    }
}

#[test]
fn members_of_json_in_a_text_are_hidden() {
    for (text, want) in [
        (
            r#"[{"name":"m","env":[{"name":"K","value":"a"}]}]"#,
            r#"[{"name":"m","env":[{"name":"K","value":"[hidden]"}]}]"#,
        ),
        (
            r#" {"set":{"K":"a"},"args":["--token","a",80]}"#,
            r#"{"set":{"K":"[hidden]"},"args":["--token","[hidden]",80]}"#,
        ),
        (
            r#"{"params":"{\"apiKey\":[\"a\"]}"}"#,
            r#"{"params":"{\"apiKey\":[\"[hidden]\"]}"}"#,
        ),
        (r#"{ "environment": "" }"#, r#"{ "environment": "" }"#),
        ("{ env: [b] }", "{ env: [b] }"),
    ] {
        let frame = serde_json::json!({"mcpServers": text}).to_string();
        let shown: Value = serde_json::from_str(&without_members(&frame)).unwrap();
        assert_eq!(shown["mcpServers"], want);
    }
}
