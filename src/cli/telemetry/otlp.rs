//! Settings of the exporter, from the option and the variables `OTEL_*`.

use crate::cli::UsageError;
use acpipe_host::OtlpSettings;
use acpipe_model::http::url_fault;
use percent_encoding::percent_decode_str;

/// Address of a collector on this machine.
const LOCAL: &str = "http://localhost:4318";

/// Returns the settings; `None` if `OTEL_SDK_DISABLED` turns telemetry off. `url` is the value of the option, which may be
/// empty.
///
/// # Errors
/// The option or a variable is invalid.
pub fn settings(
    url: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<OtlpSettings>, UsageError> {
    let disabled = variable("OTEL_SDK_DISABLED");
    if disabled.is_some_and(|word| word.trim().eq_ignore_ascii_case("true")) {
        return Ok(None);
    }
    let (source, endpoint) = match (url.trim(), variable("OTEL_EXPORTER_OTLP_ENDPOINT")) {
        ("", Some(endpoint)) => {
            let protocol = variable("OTEL_EXPORTER_OTLP_PROTOCOL");
            if protocol.is_some_and(|name| name.trim() == "grpc") {
                let message = "OTEL_EXPORTER_OTLP_PROTOCOL is `grpc`, but acpipe sends OTLP over HTTP; pass the \
                               collector's HTTP address, for example --otlp=http://localhost:4318";
                return Err(UsageError(message.to_owned()));
            }
            ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.trim().to_owned())
        }
        ("", None) => ("--otlp", LOCAL.to_owned()),
        (url, _) => ("--otlp", url.to_owned()),
    };
    if endpoint.contains('@') {
        return Err(UsageError(format!(
            "{source}: the address must not contain a user or password; use OTEL_EXPORTER_OTLP_HEADERS"
        )));
    }
    if let Some(fault) = url_fault(&endpoint) {
        return Err(UsageError(format!("{source}: the address {fault}")));
    }
    let headers = variable("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default();
    let headers = pairs("OTEL_EXPORTER_OTLP_HEADERS", &headers)?;
    let given = variable("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    let mut resource = pairs("OTEL_RESOURCE_ATTRIBUTES", &given)?;
    if let Some(name) = variable("OTEL_SERVICE_NAME") {
        resource.retain(|(key, _)| key != "service.name");
        resource.push(("service.name".to_owned(), name));
    }
    Ok(Some(OtlpSettings {
        endpoint: endpoint.trim_end_matches('/').to_owned(),
        headers,
        resource,
    }))
}

/// Parses `name=value,…` with percent escapes in the values.
fn pairs(source: &str, text: &str) -> Result<Vec<(String, String)>, UsageError> {
    let words = text
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty());
    let pair = |word: &str| {
        let (name, value) = word.split_once('=')?;
        let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
        let name = name.trim();
        (!name.is_empty()).then(|| (name.to_owned(), value.into_owned()))
    };
    let parsed: Option<Vec<_>> = words.map(pair).collect();
    // The values may be secrets.
    let message =
        || format!("{source} is not a list of NAME=VALUE, separated by commas; correct it");
    parsed.ok_or_else(|| UsageError(message()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str, variables: &[(&str, &str)]) -> Result<Option<OtlpSettings>, String> {
        let variable = |name: &str| {
            let mut found = variables.iter().filter(|(known, _)| *known == name);
            found.next().map(|(_, value)| (*value).to_owned())
        };
        settings(url, variable).map_err(|error| error.to_string())
    }

    #[test]
    fn endpoint_is_of_the_option_then_of_the_variable() {
        let variable = ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector/base/");
        for (url, variables, endpoint) in [
            ("", &[][..], "http://localhost:4318"),
            ("", &[variable], "https://collector/base"),
            ("http://other:1", &[variable], "http://other:1"),
        ] {
            assert_eq!(of(url, variables).unwrap().unwrap().endpoint, endpoint);
        }
    }

    #[test]
    fn headers_and_resource_are_lists() {
        let settings = of(
            "",
            &[
                (
                    "OTEL_EXPORTER_OTLP_HEADERS",
                    "authorization=Basic%20YQ==, x-team = a",
                ),
                ("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,team=a%2Cb"),
                ("OTEL_SERVICE_NAME", "mine"),
            ],
        );
        let settings = settings.unwrap().unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            settings.headers,
            [pair("authorization", "Basic YQ=="), pair("x-team", "a")]
        );
        assert_eq!(
            settings.resource,
            [pair("team", "a,b"), pair("service.name", "mine")]
        );
    }

    #[test]
    fn standard_variable_turns_it_off() {
        assert_eq!(of("http://c", &[("OTEL_SDK_DISABLED", "True")]), Ok(None));
        assert!(
            of("http://c", &[("OTEL_SDK_DISABLED", "0")])
                .unwrap()
                .is_some()
        );
    }

    #[test]
    fn invalid_values_are_refused_without_repeating_secrets() {
        let grpc = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4317"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ];
        assert!(of("", &grpc).unwrap_err().contains("over HTTP"));
        assert!(of("http://c:4318", &grpc).is_ok());
        assert!(of("localhost:4318", &[]).unwrap_err().contains("http://"));
        let error = of("", &[("OTEL_EXPORTER_OTLP_HEADERS", "topsecret")]).unwrap_err();
        assert!(
            error.contains("NAME=VALUE") && !error.contains("topsecret"),
            "{error}"
        );
    }
}
