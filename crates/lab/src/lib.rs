//! The testbed of pelton: origins to download from, and links to reach them over: modelled, shaped,
//! emulated, simulated.
//!
//! | module | holds |
//! |---|---|
//! | [`cells`] | `cells.toml`: the links and sets of files that measurements are made on |
//! | `emulator` | real packets over a modelled link, between two network namespaces (Linux) |
//! | [`mod@bench`] | clients measured on emulated links: command lines, runs, results |
//! | [`link`] | a shared downlink and TCP windows, in virtual time |
//! | [`model`] | the one model of a link that the emulator, the simulator and reports share |
//! | [`sim`] | whole transfers in virtual time: the real engine over a modelled link |
//! | [`shaper`] | the same in real time, around any connector |
//! | [`origin`] | an HTTP server on the loopback, with knobs for everything servers get wrong |
//! | [`capture`] | recorded packets: pcap and pcapng files |
//! | [`drawing`] | charts, and the power of a radio over time, as SVG |
//! | [`report`] | results as one HTML page |
//! | [`reproduce`] | the papers' energy figures beside the models' |
//! | [`content`] | the files it serves: deterministic bytes that cost nothing to make |
//! | [`sets`] | named sets of them |

pub mod bench;
pub mod capture;
pub mod cells;
pub mod content;
pub mod drawing;
#[cfg(target_os = "linux")]
pub mod emulator;
pub mod link;
pub mod model;
pub mod origin;
pub mod report;
pub mod reproduce;
pub mod sets;
pub mod shaper;
pub mod sim;
