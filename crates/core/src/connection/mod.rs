//! Connections: an own connector over hyper's `client::conn`.

mod connector;

pub use connector::{Connected, Connector, Io};
