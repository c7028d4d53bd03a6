//! The engine in a world of virtual time: scenarios that read as scripts, and random worlds.

mod complete;
mod control;
mod crashes;
mod damage;
mod descriptors;
mod ends;
mod faults;
mod host;
mod learnt;
mod mirrors;
mod patience;
mod pipelining;
mod random;
mod rates;
mod refusals;
mod space;
mod tuning;
mod watch;
mod world;
