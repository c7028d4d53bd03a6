//! Results as one HTML page that needs nothing else: tables, charts, and with each chart its data and
//! the command that makes it. Their tables also as Markdown.

mod markdown;
mod matrix;
mod page;

pub use markdown::matrix_markdown;
pub use matrix::matrix_page;
pub use page::{Figure, Grid, Page};
