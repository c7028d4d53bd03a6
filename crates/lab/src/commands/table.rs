//! Tables as the commands print them.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

/// A table with a rule below its `header`; columns from `left` on are numbers and stand to the
/// right.
pub(crate) fn table(header: &[&str], left: usize) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header.iter().copied());
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index >= left {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}
