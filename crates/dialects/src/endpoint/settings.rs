//! Address, headers and key of an endpoint.

use super::failure::Caller;
use acpipe_model::backend_options::BackendOptions;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::http::{HttpHeader, HttpLimits, HttpRequest, is_on_this_machine, url_fault};
use acpipe_model::limits::{Limits, Timeout};
use acpipe_model::secret::{Secrets, shown_variable};
use acpipe_protocol::wire::{AuthMethod, AuthVariable, SignIn, Variables};

#[derive(Debug)]
pub struct EndpointSetup<'a> {
    /// Address, as the user or client gave it.
    pub url: &'a str,
    pub options: &'a BackendOptions,
    /// Environment from which keys are taken.
    pub env: &'a Variables,
    pub limits: &'a Limits,
    /// Variable of the key if the options name none.
    pub default_key: Option<&'static str>,
}

#[derive(Debug)]
pub struct Endpoint {
    url: String,
    headers: Vec<HttpHeader>,
    limits: HttpLimits,
    caller: Caller,
    /// Why requests cannot be sent.
    fault: Option<Error>,
}

impl Endpoint {
    /// Creates an endpoint. Faults are reported by [`Endpoint::request`], so that the agent can be listed.
    #[must_use]
    pub fn new(setup: &EndpointSetup<'_>) -> Self {
        let variable = |name: &str| setup.env.0.get(name).cloned().flatten();
        let own_key = setup.options.api_key_env.as_deref();
        // A key without a configured name is not sent in the clear to another machine.
        let default_key = setup.default_key.filter(|_| is_private(setup.url));
        let key_variable = own_key.or(default_key);
        let key = key_variable
            .and_then(variable)
            .filter(|key| !key.is_empty());
        let mut headers = Vec::new();
        let secrets = Secrets::default();
        secrets.add_endpoint(setup.options, setup.env);
        secrets.add_values(key.as_deref());
        if let Some(key) = &key {
            headers.push(header("authorization", format!("Bearer {key}")));
        }
        let mut fault = url_fault(setup.url).map(|why| {
            Error::new(ErrorKind::InvalidParams, format!("url: {why}")).with("field", "url")
        });
        for (name, template) in &setup.options.headers.0 {
            match filled(template, variable) {
                Ok(value) => {
                    secrets.add_header(&value);
                    headers.retain(|known| !known.name.eq_ignore_ascii_case(name));
                    headers.push(header(name, value));
                }
                Err(missing) => {
                    let missing = shown_variable(&missing);
                    let message = format!(
                        "cannot send the request: header {name:?} needs the variable {missing}, which is not set; set it"
                    );
                    let error = Error::new(ErrorKind::AuthRequired, message);
                    fault.get_or_insert(error.with("variable", missing));
                }
            }
        }
        if own_key.is_some() && key.is_none() {
            let name = shown_variable(own_key.unwrap_or_default());
            let message = format!(
                "auth required: the variable {name} of the key is not set; set it, or correct its name in `api_key_env`"
            );
            let error = Error::new(ErrorKind::AuthRequired, message).with("variable", name);
            fault.get_or_insert(error);
        }
        let limit = |wait| setup.limits.of(wait);
        Self {
            url: setup.url.to_owned(),
            headers,
            limits: HttpLimits {
                connect: limit(Timeout::Connect),
                first_byte: limit(Timeout::FirstByte),
                idle: limit(Timeout::Stream),
            },
            caller: Caller {
                key_variable: key_variable.map(str::to_owned),
                has_key: key.is_some(),
                secrets,
                model: None,
            },
            fault,
        }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn caller(&self, model: Option<&str>) -> Caller {
        Caller {
            model: model.map(str::to_owned),
            ..self.caller.clone()
        }
    }

    /// Creates a request with a JSON body.
    ///
    /// # Errors
    /// The address is not valid, or a variable of a header is not set.
    pub fn request(&self, url: String, body: Vec<u8>, accept: &str) -> Result<HttpRequest, Error> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let mut headers = vec![
            header("content-type", "application/json".to_owned()),
            header("accept", accept.to_owned()),
        ];
        for own in &self.headers {
            headers.retain(|known| !known.name.eq_ignore_ascii_case(&own.name));
            headers.push(own.clone());
        }
        Ok(HttpRequest {
            url,
            headers,
            body,
            limits: self.limits,
        })
    }

    /// Sign-in methods of the endpoint: the variable of its key.
    pub fn auth_methods(&self) -> Vec<AuthMethod> {
        let variable = self.caller.key_variable.iter();
        variable
            .map(|name| AuthMethod {
                id: "api-key".to_owned(),
                name: "API key".to_owned(),
                description: None,
                way: SignIn::EnvVar {
                    vars: vec![AuthVariable {
                        name: name.clone(),
                        label: None,
                        secret: true,
                        optional: false,
                    }],
                    link: None,
                },
            })
            .collect()
    }
}

fn header(name: &str, value: String) -> HttpHeader {
    HttpHeader {
        name: name.to_ascii_lowercase(),
        value,
    }
}

/// Returns `true` if what is sent to this address cannot be read on the network.
fn is_private(url: &str) -> bool {
    url.starts_with("https://") || is_on_this_machine(url)
}

/// Fills the variables into a template with `${NAME}`.
///
/// # Errors
/// Name of a variable that is not set.
fn filled(template: &str, variable: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, after)) = after.split_once('}') else {
            break;
        };
        text.push_str(before);
        text.push_str(&variable(name).ok_or(name)?);
        rest = after;
    }
    text.push_str(rest);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpipe_model::backend_options::Headers;

    fn env(pairs: &[(&str, &str)]) -> Variables {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| ((*name).to_owned(), Some((*value).to_owned())))
            .collect()
    }

    fn headers(url: &str, options: &BackendOptions, env: &Variables) -> Result<Vec<String>, Error> {
        let endpoint = Endpoint::new(&EndpointSetup {
            url,
            options,
            env,
            limits: &Limits::default(),
            default_key: Some("OPENAI_API_KEY"),
        });
        let request = endpoint.request(url.to_owned(), Vec::new(), "a/b")?;
        let shown = request.headers.iter();
        Ok(shown.map(|h| format!("{}: {}", h.name, h.value)).collect())
    }

    #[test]
    fn default_key_is_not_sent_in_the_clear_to_another_machine() {
        let env = env(&[("OPENAI_API_KEY", "sk-1")]);
        for (url, is_sent) in [
            ("https://api.example.com/v1", true),
            ("http://localhost:1/v1", true),
            ("http://127.0.0.1:1/v1", true),
            ("http://[::1]:1/v1", true),
            ("http://10.0.0.5/v1", false),
            ("http://localhost.example.com/v1", false),
            ("http://127.0.0.1.example.com/v1", false),
        ] {
            let headers = headers(url, &BackendOptions::default(), &env).unwrap();
            let sent = headers.contains(&"authorization: Bearer sk-1".to_owned());
            assert_eq!(sent, is_sent, "{url}");
        }
    }

    #[test]
    fn headers_take_variables_and_replace_acpipe_s_own() {
        let options = BackendOptions {
            api_key_env: Some("KEY".to_owned()),
            headers: Headers(
                [
                    ("Authorization".to_owned(), "Token ${KEY}".to_owned()),
                    ("X-Team".to_owned(), "${TEAM}-${TEAM}$".to_owned()),
                ]
                .into(),
            ),
            ..BackendOptions::default()
        };
        let url = "http://10.0.0.5/";
        let all = headers(url, &options, &env(&[("KEY", "k"), ("TEAM", "t")])).unwrap();
        assert_eq!(
            all,
            [
                "content-type: application/json",
                "accept: a/b",
                "authorization: Token k",
                "x-team: t-t$"
            ]
        );
        let error = headers(url, &options, &env(&[("KEY", "k")])).unwrap_err();
        assert_eq!(error.kind, ErrorKind::AuthRequired);
        assert!(error.message.contains("TEAM"), "{error}");
    }

    #[test]
    fn configured_key_that_is_not_set_is_reported_by_its_name() {
        let options = BackendOptions {
            api_key_env: Some("MY_KEY".to_owned()),
            ..BackendOptions::default()
        };
        let error = headers("https://h/", &options, &env(&[])).unwrap_err();
        assert_eq!(error.kind, ErrorKind::AuthRequired);
        assert!(error.message.contains("MY_KEY"), "{error}");
    }

    #[test]
    fn key_and_parts_of_headers_are_hidden_in_texts_of_the_endpoint() {
        let options = BackendOptions {
            api_key_env: Some("KEY".to_owned()),
            headers: Headers(
                [
                    ("X-Auth".to_owned(), "Token of-template-1".to_owned()),
                    ("X-Team".to_owned(), "${TEAM}".to_owned()),
                    ("Cookie".to_owned(), "${COOKIES}".to_owned()),
                ]
                .into(),
            ),
            ..BackendOptions::default()
        };
        let env = env(&[
            ("KEY", "of-key-1"),
            ("TEAM", "ApiKey of-variable-1"),
            ("COOKIES", "a=b; s=of-cookie-1"),
        ]);
        let endpoint = Endpoint::new(&EndpointSetup {
            url: "https://h/",
            options: &options,
            env: &env,
            limits: &Limits::default(),
            default_key: None,
        });
        let caller = endpoint.caller(None);
        for secret in ["of-key-1", "of-template-1", "of-variable-1", "of-cookie-1"] {
            assert_eq!(caller.clean(&format!("key {secret}.")), "key [hidden].");
        }
    }
}
