//! What to do next: the scheduling decisions of pelton, as pure code.
//!
//! Nothing in this crate does anything. There is no I/O, no thread, no clock and no global random
//! number: time is an argument ([`time::Timestamp`]), randomness is an argument
//! ([`retries::Jitter`]), and the same inputs give the same decisions.
//!
//! | module | holds |
//! |---|---|
//! | [`units`] | bytes, bit rates, joules and watts, with their arithmetic |
//! | [`time`] | time since the run began |
//! | [`link`] | what is believed of the link, and the filters that build the belief |
//! | [`cluster`] | files to small, medium and large clusters |
//! | [`sizes`] | what size a file will likely have before its server has said so |
//! | [`params`] | the three formulas: pipelining, parallelism, concurrency |
//! | [`policy`] | the [`policy::Policy`] trait, and LowE, HAT, EHT and fixed |
//! | [`energy`] | what a policy may ask about joules |
//! | [`ranges`] | which bytes of a file are done, in flight or missing |
//! | [`limits`] | budgets per origin, overload back-off |
//! | [`memory`] | how connections share a limit on memory |
//! | [`rate`] | a limit on the rate of a run, shared fairly by its files |
//! | [`rests`] | how long a connection leaves unread what comes, for few acknowledgements |
//! | [`retries`] | how often a failed request is made again, and after what pause |
//! | [`answers`] | how long answers take, and whether a server thinks about them |
//! | [`handshakes`] | how many TLS handshakes a path bears before it is known how fast it is |
//! | [`overdue`] | how long a first answer may take, and what a host that leaves some out is trusted with |
//! | [`machines`] | whether several machines answer under one name, and differ |
//! | [`losses`] | what lost packets tell of the windows that connections will have |
//! | [`short_lives`] | whether connections that are shared end after too few answers |
//! | [`silence`] | for how long a stream may bring nothing until another connection is asked |
//! | [`tail`] | which stream is so slow that another connection shall bring its bytes |
//! | [`crowding`] | connections that are so many that they bring less than fewer did |
//! | [`sharing`] | how streams are spread over the connections that they share |
//! | [`outlook`] | whether others shall help a stream that has its path for itself |
//! | [`round_trips`] | what a connection tells of how long round trips are of late |
//! | [`slump`] | how many range streams a path is given whose rate has fallen |
//! | [`growth`] | how far lanes grow beyond the formulas |
//! | [`credit`] | how far ahead a server may send over HTTP/2 |

mod absence;
mod allowance;
pub mod answers;
pub mod bodies;
mod breaks;
pub mod cluster;
pub mod connections;
pub mod credit;
pub mod crowding;
pub mod energy;
pub mod free_path;
pub mod growth;
pub mod handshakes;
pub mod limits;
pub mod link;
pub mod losses;
pub mod machines;
pub mod memory;
pub mod opening;
pub mod outlook;
pub mod overdue;
pub mod pace;
pub mod params;
pub mod parts;
mod pauses;
pub mod policy;
pub mod ramp;
pub mod ranges;
pub mod rate;
pub mod refusals;
pub mod refused_files;
mod regrowth;
mod request_rate;
pub mod rests;
pub mod retries;
pub mod round_trips;
pub mod sharing;
pub mod short_lives;
pub mod silence;
pub mod sizes;
pub mod slow_start;
pub mod slump;
mod spared;
pub mod spread;
pub mod tail;
pub mod time;
pub mod turns;
pub mod units;
mod waits;
