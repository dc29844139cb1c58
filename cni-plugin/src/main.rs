//! `aether-cni`, the chained CNI plugin.

fn main() -> std::process::ExitCode {
    aether_cni::shell::main()
}
