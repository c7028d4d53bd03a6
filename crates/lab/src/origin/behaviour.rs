//! What an origin does wrong, or differently, on purpose.

use std::time::Duration;

use pelton_algos::units::BitRate;

/// How an origin answers. The default is a well-behaved static file server.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OriginBehaviour {
    /// `Range` is ignored and `Accept-Ranges` not sent: always 200 and the whole file.
    pub ignore_ranges: bool,
    /// Ranges are given, and nothing says so before one is asked for.
    pub hide_ranges: bool,
    /// The length of a whole file is not told: chunked over HTTP/1.1, nothing over HTTP/2.
    pub hide_length: bool,
    /// No `ETag` and no `Last-Modified`.
    pub hide_validators: bool,
    /// Time between a request and its response.
    pub latency: Duration,
    /// The first requests get an error status.
    pub storm: Option<Storm>,
    /// User and password that every request must bring (RFC 7617).
    pub basic_auth: Option<(String, String)>,
    /// 302 to this `Location`. To the path's own: a loop.
    pub redirect_to: Option<String>,
    /// Bodies of one connection together come no faster than this.
    pub rate_per_connection: Option<BitRate>,
}

/// An error status for the first requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Storm {
    /// The status, say 429 or 503.
    pub status: u16,
    /// How many requests get it. `u64::MAX`: all.
    pub requests: u64,
    /// `Retry-After` in whole seconds (RFC 9110, section 10.2.3).
    pub retry_after: Option<u64>,
}
