//! Connections: an own connector over hyper's `client::conn`.
