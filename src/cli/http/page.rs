//! The page at `/`.

use axum::Router;
use axum::http::header;
use axum::routing::get;
use std::sync::Arc;

use super::state::ServerState;

/// Files of the page: path, content type, content.
#[cfg(feature = "page")]
const FILES: [(&str, &str, &[u8]); 3] = [
    (
        "/",
        "text/html; charset=utf-8",
        include_bytes!("../../../web/dist/index.html"),
    ),
    (
        "/app.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../../../web/dist/app.js"),
    ),
    (
        "/app.css",
        "text/css; charset=utf-8",
        include_bytes!("../../../web/dist/app.css"),
    ),
];

#[cfg(not(feature = "page"))]
const FILES: [(&str, &str, &[u8]); 1] = [(
    "/",
    "text/plain; charset=utf-8",
    b"acpipe is running. This build has no page; the endpoints are under /api/chat and /rpc.\n",
)];

/// Adds the page. It has no secrets: the token is in the fragment of the address, which browsers do not send.
pub fn with_page(mut router: Router<Arc<ServerState>>) -> Router<Arc<ServerState>> {
    for (path, kind, content) in FILES {
        let headers = [
            (header::CONTENT_TYPE, kind),
            (header::CACHE_CONTROL, "no-cache"),
        ];
        router = router.route(path, get(move || async move { (headers, content) }));
    }
    router
}
