//! Images without a registry: one static program becomes an OCI layout in a tar, which `ctr images import` takes.

use std::fmt::Write as _;

use serde_json::json;
use sha2::{Digest as _, Sha256};

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// The image of every sandbox.
pub const PAUSE: &str = "localhost/pause:1";

/// An image of one program.
#[derive(Debug, Clone)]
pub struct Image<'a> {
    /// The name with its tag, `localhost/pause:1`.
    pub reference: &'a str,
    /// The program's file name; it is the image's entry point, at the root.
    pub name: &'a str,
    /// The program, static.
    pub program: &'a [u8],
    /// The program's default arguments.
    pub arguments: &'a [&'a str],
}

impl Image<'_> {
    /// The image as an OCI layout in a tar. The same input gives the same bytes.
    pub fn tar(&self) -> Vec<u8> {
        let mut layer = Tar::default();
        layer.directory("etc");
        layer.file("etc/passwd", 0o644, b"root:x:0:0::/:/\nnobody:x:65534:65534::/:/\n");
        layer.file(self.name, 0o755, self.program);
        let layer = layer.end();

        let config = json!({
            "architecture": architecture(), "os": "linux",
            "config": {"Entrypoint": [format!("/{}", self.name)], "Cmd": self.arguments, "WorkingDir": "/", "Env": ["PATH=/"]},
            "rootfs": {"type": "layers", "diff_ids": [digest(&layer)]},
        })
        .to_string();
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": descriptor(CONFIG, config.as_bytes()),
            "layers": [descriptor(LAYER, &layer)],
        })
        .to_string();
        let mut entry = descriptor(MANIFEST, manifest.as_bytes());
        if let Some(entry) = entry.as_object_mut() {
            entry.insert("annotations".to_owned(), json!({"io.containerd.image.name": self.reference}));
            entry.insert("platform".to_owned(), json!({"architecture": architecture(), "os": "linux"}));
        }
        let index = json!({"schemaVersion": 2, "manifests": [entry]}).to_string();

        let mut tar = Tar::default();
        tar.file("oci-layout", 0o644, br#"{"imageLayoutVersion":"1.0.0"}"#);
        tar.file("index.json", 0o644, index.as_bytes());
        for blob in [config.as_bytes(), manifest.as_bytes(), &layer] {
            tar.file(&format!("blobs/{}", digest(blob).replace(':', "/")), 0o644, blob);
        }
        tar.end()
    }
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn descriptor(media_type: &str, bytes: &[u8]) -> serde_json::Value {
    json!({"mediaType": media_type, "digest": digest(bytes), "size": bytes.len()})
}

fn digest(bytes: &[u8]) -> String {
    let mut text = String::from("sha256:");
    for byte in Sha256::digest(bytes) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// A writer of the plainest ustar: files and directories of root, made at time 0.
#[derive(Default)]
struct Tar(Vec<u8>);

const BLOCK: usize = 512;

impl Tar {
    fn directory(&mut self, name: &str) {
        self.header(name, 0o755, 0, b'5');
    }

    fn file(&mut self, name: &str, mode: u32, bytes: &[u8]) {
        self.header(name, mode, bytes.len(), b'0');
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(BLOCK), 0);
    }

    fn header(&mut self, name: &str, mode: u32, size: usize, kind: u8) {
        let mut header = Vec::with_capacity(BLOCK);
        let mut field = |text: &str, width: usize| {
            let mut bytes = text.as_bytes().to_vec();
            bytes.resize(width, 0);
            header.append(&mut bytes);
        };
        field(name, 100);
        field(&format!("{mode:07o}"), 8);
        field("0000000", 8);
        field("0000000", 8);
        field(&format!("{size:011o}"), 12);
        field("00000000000", 12);
        field("        ", 8); // the checksum counts as blanks
        field(&char::from(kind).to_string(), 1);
        field("", 100);
        field("ustar", 6);
        field("00", 2);
        header.resize(BLOCK, 0);
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header.splice(148..156, format!("{sum:06o}\0 ").into_bytes());
        self.0.append(&mut header);
    }

    fn end(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 2 * BLOCK, 0);
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn an_image_is_a_tar_that_tar_reads_and_the_same_bytes_each_time() {
        let image = Image { reference: PAUSE, name: "pause", program: b"program", arguments: &["1"] };
        let bytes = image.tar();
        assert_eq!(bytes, image.tar());
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("i.tar"), &bytes).unwrap();
        let listing = Command::new("tar")
            .args(["tf", "i.tar"])
            .current_dir(dir.path())
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        assert!(listing.status.success());
        let names = String::from_utf8(listing.stdout).unwrap();
        assert!(names.starts_with("oci-layout\nindex.json\nblobs/sha256/"), "{names}");
    }
}
