//! Where acpipe gets secrets, and the forms in which they are written.

use super::headers::{self, header_values, login_secret, scheme_values, strings};
use super::known::SHORTEST;
use super::view::views;
use super::{Secrets, address, names, patterns};
use crate::backend_options::BackendOptions;
use crate::mcp;
use acpipe_protocol::wire::{McpPair, McpServer, McpTransport, Variables};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

/// Shortest value that is also known in base64. A shorter one has too few characters there that depend on it alone.
const SHORTEST_CODED: usize = 8;

/// Longest value that is also known in base64, as in a header.
const LONGEST_CODED: usize = 1024;

/// Maximum number of lines of a value that is also known in base64: none of a file is sent in a header.
const MOST_CODED_LINES: usize = 64;

impl Secrets {
    pub fn add_variables(&self, variables: &Variables) {
        let variables = variables.0.iter();
        self.add_named(variables.filter_map(|(name, value)| Some((name, value.as_ref()?))));
    }

    /// Adds the values of variables with their names, which say of what secrets a value consists.
    pub(super) fn add_named<'a>(
        &self,
        variables: impl IntoIterator<Item = (&'a String, &'a String)>,
    ) {
        let mut values = Vec::new();
        for (name, value) in variables {
            variable_values(name, value, &mut values);
        }
        self.add_values(values.iter().map(String::as_str));
    }

    /// Adds the values of MCP servers' variables and headers, credentials and query values in their URLs, and
    /// the values of variables referenced in any of these or in arguments.
    pub fn add_servers(&self, servers: &[McpServer]) {
        let mut values = Vec::new();
        for server in servers {
            let (texts, pairs, parts): (_, _, fn(&str, &mut Vec<String>)) = match &server.transport
            {
                McpTransport::Stdio { args, env, .. } => (args.as_slice(), env, scheme_values),
                McpTransport::Http { url, headers } | McpTransport::Sse { url, headers } => {
                    url_values(url, &mut values);
                    (std::slice::from_ref(url), headers, header_values)
                }
            };
            for text in texts {
                values.extend(self.referenced(text).map(str::to_owned));
            }
            for McpPair { name, value, .. } in pairs {
                variable_values(name, value, &mut values);
                // A variable may hold a whole header.
                for value in std::iter::once(value.as_str()).chain(self.referenced(value)) {
                    parts(value, &mut values);
                }
            }
            let others = ["env", "headers"].map(|name| server.other.get(name));
            for value in others.into_iter().flatten() {
                strings(value, &mut values);
            }
        }
        self.add_values(values.iter().map(String::as_str));
    }

    /// Adds the key and the headers of an endpoint, with the variables that they refer to. `env`: the agent's own
    /// variables.
    pub fn add_endpoint(&self, options: &BackendOptions, env: &Variables) {
        let mut values = Vec::new();
        let variable = |name: &str| {
            let value = env.0.get(name).or_else(|| self.environment.0.get(name));
            value.cloned().flatten()
        };
        values.extend(options.api_key_env.as_deref().and_then(variable));
        for (name, template) in &options.headers.0 {
            variable_values(name, template, &mut values);
            header_values(template, &mut values);
            let names = mcp::variables(template).map(|(name, _)| name);
            for value in names.filter_map(variable) {
                header_values(&value, &mut values);
            }
        }
        self.add_values(values.iter().map(String::as_str));
    }

    /// Adds the value of a header with its parts.
    pub fn add_header(&self, value: &str) {
        let mut values = Vec::new();
        header_values(value, &mut values);
        self.add_values(values.iter().map(String::as_str));
    }

    /// Returns the defaults of the variables in a text and their values in acpipe's own environment. Values that
    /// the client sets are known already.
    fn referenced<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'a str> {
        mcp::variables(text).flat_map(|(name, default)| {
            let value = self.environment.0.get(name).and_then(Option::as_deref);
            default.into_iter().chain(value)
        })
    }
}

/// Adds the value of a variable, and its parts that are secrets of their own: those of the header or list that it holds,
/// a password, and the user of an address without a password.
fn variable_values(name: &str, value: &str, values: &mut Vec<String>) {
    values.push(value.to_owned());
    let unquoted = value.trim_matches(['"', '\'']);
    if unquoted != value {
        values.push(unquoted.to_owned());
    }
    headers::variable_values(name, unquoted, values);
    if names::is_address(name) {
        values.extend(address::password(value).map(|range| value[range].to_owned()));
    }
    if let Some((_, place)) = value.split_once("://") {
        let place = place.split('/').next().unwrap_or_default();
        let caller = place.rsplit_once('@').map(|(caller, _)| caller);
        // A key in an address may be its user alone.
        let key = caller.filter(|user| !user.contains(':'));
        values.extend(key.or_else(|| login_secret(caller?)).map(str::to_owned));
    } else if names::is_login(name) {
        values.extend(login_secret(value).map(str::to_owned));
        values.extend(decoded_login(value));
    }
}

/// Returns the secret in the base64 of `user:password`.
fn decoded_login(code: &str) -> Option<String> {
    let login = String::from_utf8(STANDARD.decode(code.trim()).ok()?).ok()?;
    login_secret(&login).map(str::to_owned)
}

/// Adds the user information and the query values of a URL.
fn url_values(url: &str, values: &mut Vec<String>) {
    values.extend(address::password(url).map(|range| url[range].to_owned()));
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let host = place.split('/').next().unwrap_or_default();
    let caller = host.rsplit_once('@').map_or("", |(caller, _)| caller);
    values.extend(caller.split(':').map(str::to_owned));
    let pairs = query
        .split(['&', ';'])
        .filter_map(|pair| pair.split_once('='));
    values.extend(pairs.map(|(_, value)| value.to_owned()));
}

/// Returns the forms in which values are written: each line, without its escapes, in base64, in Latin-1, with `+` for
/// spaces, and what looks like a secret in it.
pub fn forms<'a>(values: impl IntoIterator<Item = &'a str>) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for value in values {
        let is_file = value.lines().count() > MOST_CODED_LINES;
        let lines = value.lines().map(str::trim);
        for line in lines.filter(|line| line.len() >= SHORTEST) {
            let parts = patterns::found(line).into_iter().map(|range| &line[range]);
            for view in parts.chain([line]).flat_map(views) {
                if !is_file {
                    coded(view.bytes(), &mut forms);
                    forms.extend(latin_1(view.bytes()));
                    forms.extend(of_form(view.bytes()));
                }
                forms.push(view.bytes().to_vec());
            }
        }
    }
    forms
}

/// Returns a value with the characters up to U+00FF as single bytes: Python escapes them as `\xe9`.
fn latin_1(value: &[u8]) -> Option<Vec<u8>> {
    let value = std::str::from_utf8(value).ok()?;
    let is_single = |c: char| !c.is_ascii() && u8::try_from(c).is_ok();
    let mut buffer = [0; 4];
    value.contains(is_single).then(|| {
        let mut bytes = Vec::with_capacity(value.len());
        for c in value.chars() {
            match u8::try_from(c) {
                Ok(byte) => bytes.push(byte),
                Err(_) => bytes.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes()),
            }
        }
        bytes
    })
}

/// Returns a value with its spaces as in the form of a web page. The rest of that encoding is a view.
fn of_form(value: &[u8]) -> Option<Vec<u8>> {
    let as_in_form = |byte: &u8| if *byte == b' ' { b'+' } else { *byte };
    value
        .contains(&b' ')
        .then(|| value.iter().map(as_in_form).collect())
}

/// Adds the base64 of a value, in its three positions inside of a longer text. What depends on the text around it is
/// left out.
fn coded(value: &[u8], forms: &mut Vec<Vec<u8>>) {
    if !(SHORTEST_CODED..=LONGEST_CODED).contains(&value.len()) {
        return;
    }
    for before in 0..3 {
        let text = [&b"\0\0"[..before], value].concat();
        let code = STANDARD_NO_PAD.encode(&text);
        let from = (before * 8).div_ceil(6);
        let to = text.len() * 8 / 6;
        let code = &code[from..to];
        let in_urls = code.replace('+', "-").replace('/', "_");
        if in_urls != code {
            forms.push(in_urls.into_bytes());
        }
        forms.push(code.as_bytes().to_vec());
    }
}
