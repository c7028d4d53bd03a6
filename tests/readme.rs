//! What README.md shows is what the example runs.

#[test]
fn the_quick_start_is_the_example() {
    let readme = include_str!("../README.md");
    let example = include_str!("../examples/quick_start.rs");
    let shown = readme.split("```rust\n").nth(1).unwrap().split("```").next().unwrap();
    let runs: Vec<&str> = example.lines().map(|line| line.trim_start_matches("    ")).collect();
    let shown: Vec<&str> = shown.lines().map(|line| line.trim_start_matches("    ")).collect();
    assert!(runs.windows(shown.len()).any(|lines| lines == shown), "README.md shows another one");
}
