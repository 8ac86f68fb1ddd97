//! Check of `Host` and `Origin`: keeps out pages of other sites, also those that rebind their name to this machine.

use super::failure::HttpFailure;
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, StatusCode, Uri};
use std::net::IpAddr;

/// Names and origins that requests may have.
pub struct Guard {
    address: IpAddr,
    port: u16,
    is_tls: bool,
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl Guard {
    /// Creates the guard of a bound address. `hosts` and `origins` are allowed besides loopback and same origin.
    pub fn new(
        (address, port): (IpAddr, u16),
        is_tls: bool,
        hosts: &[String],
        origins: &[String],
    ) -> Self {
        let lowercase = |all: &[String]| all.iter().map(|one| one.to_ascii_lowercase()).collect();
        Self {
            address,
            port,
            is_tls,
            hosts: lowercase(hosts),
            origins: lowercase(origins),
        }
    }

    /// Checks the address and the headers of a request.
    pub fn check(&self, target: &Uri, headers: &HeaderMap) -> Result<(), HttpFailure> {
        let mut hosts = headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            let message = "the request must have one Host header";
            return Err(HttpFailure::new(StatusCode::BAD_REQUEST, message));
        };
        let host = host.to_str().unwrap_or_default().to_ascii_lowercase();
        if !self.allows_host(&host) {
            let message = "this Host is not allowed; start acpipe with --allow-host and the name of the server";
            return Err(HttpFailure::new(StatusCode::FORBIDDEN, message));
        }
        // The address can be a whole URL, which counts more than `Host` for proxies.
        let named = target.authority();
        if named.is_some_and(|named| !named.as_str().eq_ignore_ascii_case(&host)) {
            let message = "the address of the request names another server than its Host header";
            return Err(HttpFailure::new(StatusCode::BAD_REQUEST, message));
        }
        for origin in headers.get_all(ORIGIN) {
            let origin = origin.to_str().unwrap_or_default().to_ascii_lowercase();
            if !self.allows_origin(&origin, &host) {
                let message = "this Origin is not allowed; start acpipe with --allow-origin and the origin of the page";
                return Err(HttpFailure::new(StatusCode::FORBIDDEN, message));
            }
        }
        Ok(())
    }

    fn allows_host(&self, host: &str) -> bool {
        let Some((name, port)) = split_port(host) else {
            return false;
        };
        let is_allowed = |allowed: &String| *allowed == name || *allowed == host;
        if self.hosts.iter().any(is_allowed) {
            return true;
        }
        let default_port = if self.is_tls { 443 } else { 80 };
        port.unwrap_or(default_port) == self.port && self.is_own_name(&name)
    }

    /// Returns `true` if the name always refers to this machine: an address, or a name that DNS cannot change.
    fn is_own_name(&self, name: &str) -> bool {
        let Ok(address) = name.parse::<IpAddr>() else {
            return name == "localhost";
        };
        let is_any = self.address.is_unspecified();
        address.is_loopback() || address == self.address || is_any
    }

    fn allows_origin(&self, origin: &str, host: &str) -> bool {
        let same = ["http://", "https://"]
            .into_iter()
            .any(|scheme| origin.strip_prefix(scheme) == Some(host));
        same || self.origins.iter().any(|allowed| allowed == origin)
    }
}

/// Splits `host`, `host:port` or `[v6]:port`; the name is without brackets.
fn split_port(host: &str) -> Option<(String, Option<u16>)> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (name, port) = rest.split_once(']')?;
            (name, port)
        }
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let port = match port.strip_prefix(':') {
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => Some(port.parse().ok()?),
        None if port.is_empty() => None,
        _ => return None,
    };
    (!name.is_empty()).then(|| (name.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(guard: &Guard, headers: &[(&'static str, &str)]) -> Option<u16> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        guard
            .check(&Uri::from_static("/"), &map)
            .err()
            .map(|failure| failure.status.as_u16())
    }

    fn guard(address: &str, hosts: &[&str], origins: &[&str]) -> Guard {
        let owned = |all: &[&str]| all.iter().map(|&one| one.to_owned()).collect::<Vec<_>>();
        let address = (address.parse().unwrap(), 4100);
        Guard::new(address, false, &owned(hosts), &owned(origins))
    }

    #[test]
    fn host_must_be_loopback_with_the_bound_port_or_allowed() {
        let guard = guard("127.0.0.1", &["box.example", "other.example:99"], &[]);
        for host in [
            "127.0.0.1:4100",
            "localhost:4100",
            "LocalHost:4100",
            "[::1]:4100",
            "box.example",
            "box.example:443",
            "other.example:99",
        ] {
            assert_eq!(status(&guard, &[("host", host)]), None, "{host}");
        }
        for host in [
            "localhost",
            "localhost:4101",
            "localhost.evil.example:4100",
            "evil.example:4100",
            "192.168.1.2:4100",
            "other.example",
            "localhost:4100:1",
            "localhost:+4100",
            "[::1",
            "",
            "@localhost:4100",
        ] {
            assert_eq!(status(&guard, &[("host", host)]), Some(403), "{host}");
        }
        assert_eq!(status(&guard, &[]), Some(400));
        let twice = [("host", "localhost:4100"), ("host", "evil.example")];
        assert_eq!(status(&guard, &twice), Some(400));
    }

    #[test]
    fn host_may_be_any_address_if_all_are_bound() {
        let all = guard("0.0.0.0", &[], &[]);
        assert_eq!(status(&all, &[("host", "192.168.1.2:4100")]), None);
        assert_eq!(status(&all, &[("host", "evil.example:4100")]), Some(403));
        let one = guard("192.168.1.2", &[], &[]);
        assert_eq!(status(&one, &[("host", "192.168.1.2:4100")]), None);
        assert_eq!(status(&one, &[("host", "192.168.1.3:4100")]), Some(403));
    }

    #[test]
    fn whole_url_must_name_the_same_server_as_host() {
        let guard = guard("127.0.0.1", &[], &[]);
        let mut headers = HeaderMap::new();
        headers.append(HOST, "localhost:4100".parse().unwrap());
        let status = |url| guard.check(&Uri::from_static(url), &headers);
        assert_eq!(status("http://LocalHost:4100/metrics"), Ok(()));
        for url in [
            "http://evil.example/metrics",
            "http://localhost:4101/",
            "evil.example:80",
        ] {
            assert_eq!(status(url).unwrap_err().status, 400, "{url}");
        }
    }

    #[test]
    fn origin_must_be_the_same_or_allowed() {
        let guard = guard("127.0.0.1", &[], &["https://app.example"]);
        let with = |origin| status(&guard, &[("host", "localhost:4100"), ("origin", origin)]);
        assert_eq!(with("http://localhost:4100"), None);
        assert_eq!(with("https://app.example"), None);
        for origin in [
            "null",
            "http://localhost:3000",
            "http://127.0.0.1:4100",
            "https://evil.example",
            "https://app.example.evil.example",
        ] {
            assert_eq!(with(origin), Some(403), "{origin}");
        }
    }
}
