//! Nothing but the standard library is linked in.

use std::process::Command;

#[test]
fn b01_the_probes_have_no_dependency() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline", "--package", env!("CARGO_PKG_NAME")])
        .args(["--edges", "normal,build", "--target", "all", "--prefix", "none", "--format", "{p}"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).expect("text");
    let packages: Vec<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(packages, [env!("CARGO_PKG_NAME")], "a probe may use the standard library alone (B01)");
}
