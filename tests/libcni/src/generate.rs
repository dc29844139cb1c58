//! Lists made up from a seed: mostly right, with everything that readers disagree about, and mutations of real ones.

use crate::case::{Case, Item};

/// Random numbers from a seed (splitmix64): a failure can be played again.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end.max(1)).unwrap_or(1)).unwrap_or_default()
    }

    /// Whether something that happens once in `times` happens.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let index = self.below(from.len());
        from.get(index).unwrap_or_else(|| unreachable!("nothing to pick from"))
    }
}

const LIST_KEYS: &[&[u8]] = &[
    b"\"name\"",
    b"\"cniVersion\"",
    b"\"plugins\"",
    b"\"Name\"",
    b"\"Plugins\"",
    b"\"pl\\u0075gins\"",
    b"\"cniVersions\"",
    b"\"disableCheck\"",
    b"\"disableGC\"",
    b"\"loadOnlyInlinedPlugins\"",
    b"\"zzz\"",
    b"\"\"",
    b"\"caf\xE9\"",
    b"\"caf\\ud800\"",
    b"\"caf\xEF\xBF\xBD\"",
];
const ENTRY_KEYS: &[&[u8]] = &[
    b"\"type\"",
    b"\"Type\"",
    b"\"TYPE\"",
    b"\"tYpe\"",
    b"\"t\\u0079pe\"",
    b"\"name\"",
    b"\"NAME\"",
    b"\"cniVersion\"",
    b"\"CNIVERSION\"",
    b"\"cniVer\xC5\xBFion\"",
    b"\"ipam\"",
    b"\"IPAM\"",
    b"\"dns\"",
    b"\"DN\xC5\xBF\"",
    b"\"capabilities\"",
    b"\"capabilitie\xC5\xBF\"",
    b"\"prevResult\"",
    b"\"cni.dev/valid-attachments\"",
    b"\"CNI.dev/Valid-Attachments\"",
    b"\"mtu\"",
    b"\"x\xFF\"",
    b"\"\xE2\x84\xAA\"",
    b"\"plugins\"",
];
const TYPES: &[&[u8]] = &[
    b"\"flannel\"",
    b"\"aether-cni\"",
    b"\"aether-cn\\u0069\"",
    b"\"portmap\"",
    b"\"loopback\"",
    b"\"\"",
    b"null",
    b"\"a\xFFb\"",
    b"\"<&>\"",
    b"\"\\ud83d\\ude00\"",
    b"\"\\ude00\"",
];
const SCALARS: &[&[u8]] = &[
    b"null",
    b"true",
    b"false",
    b"0",
    b"-0",
    b"1.0",
    b"1e3",
    b"1E+3",
    b"9007199254740993",
    b"1e308",
    b"1e309",
    b"-1e999",
    b"1e-999",
    b"0e99999999",
    b"1e99999999999999999999",
    b"\"\"",
    b"\"x\"",
    b"\"\\u003c\"",
    b"\"\xC3\xA9\"",
    b"\"\xFF\xFE\"",
    b"\"\xE2\x82\"",
    b"\"\\ud83d\\ude00\"",
    b"\"\\ud800x\"",
    b"\"true\"",
    b"\"FALSE\"",
    b"\"\\u2028\"",
    b"\"\xED\xA0\x80\"",
    b"{}",
    b"[]",
    b"{\"a\":[]}",
    b"123456789012345678901234567890",
    b"0.1",
    b"\"\\/\\b\\f\"",
];
const VERSIONS: &[&[u8]] = &[
    b"\"0.3.1\"",
    b"\"1.0.0\"",
    b"\"1.1.0\"",
    b"\"1.1\"",
    b"\"1\"",
    b"\"1.2.0\"",
    b"\"\"",
    b"\"x\"",
    b"\"1.0.0.0\"",
    b"\"+1.0\"",
    b"\"-1\"",
    b"\"01.0.0\"",
    b"\"1..0\"",
    b"\"99999999999999999999\"",
    b"null",
    b"1",
];
const NAMES: &[&[u8]] = &[
    b"\"cbr0\"",
    b"\"cbr0\"",
    b"\"cbr0\"",
    b"\"\"",
    b"\"..\"",
    b"\"a/b\"",
    b"\"bad name/!\"",
    b"\"caf\xE9\"",
    b"null",
    b"1",
];
const SPACES: &[&[u8]] = &[b"", b"", b"", b" ", b"\n", b"\r\n\t", b"  "];
/// Bytes put in by a mutation.
const TOKENS: &[&[u8]] = &[
    b",",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b"\"",
    b"\\",
    b"\0",
    b"\x7F",
    b"\x1F",
    b"\xFF",
    b"\xEF\xBB\xBF",
    b"//",
    b"/*",
    b"#",
    b"null",
    b"\\u",
    b"\\ud800",
    b"1e999",
    b"-",
    b"0",
    b".",
    b"e",
    b"\n",
    b"\r",
    b"\xC2\xA0",
    b"'",
    b"NaN",
    b"\"type\":\"aether-cni\",",
    b"\"plugins\":[],",
    b"\"name\":1,",
];
const FILE_NAMES: &[&str] = &[
    "10-flannel.conflist",
    "05-x.conflist",
    ".hidden.conflist",
    ".conf",
    ".json",
    "10-flannel.conf",
    "10-flannel.json",
    "00-x.CONFLIST",
    "README",
    "10-flannel.conflist.bak",
    "x.conflist~",
    "a.conf.conflist",
    "\u{e9}.conflist",
    "100-x.conflist",
    "9.json",
];

/// A directory with a made-up list, now and then with others beside it and with drop-ins.
pub fn case(random: &mut Random) -> Case {
    let mut case = Case::default();
    let single = random.once_in(5);
    let name = if single { *random.pick(&["10-x.conf", "10-x.json"]) } else { "10-x.conflist" };
    case = case.with(name, file(random, single));
    if random.once_in(6) {
        let dir = *random.pick(&["cbr0", "cbr0", "cbr0", "a/b", "cbr0/deeper"]);
        for file_name in ["20-y.conf", "10-x.conf", "x.conflist", "README"] {
            if random.once_in(2) {
                let bytes = if random.once_in(6) {
                    mutated(random, b"{\"type\":\"x\"}")
                } else {
                    object(random, true)
                };
                case = case.with(&format!("{dir}/{file_name}"), bytes);
            }
        }
    }
    if random.once_in(40) {
        case = case.with("cbr0", "a file where libcni looks for a directory");
        case.items.retain(|(name, _)| !name.starts_with("cbr0/"));
    }
    case
}

/// A directory with several names, to see which one is chosen.
pub fn names(random: &mut Random) -> Case {
    let mut case = Case::default();
    for name in FILE_NAMES {
        if !random.once_in(4) {
            continue;
        }
        case = match random.below(8) {
            0 => case.with_item(name, Item::Dir),
            1 => case.with_item(name, Item::Link("target".to_owned())),
            2 => case.with_item(name, Item::Link("nowhere".to_owned())),
            3 => case.with_item(name, Item::Link("folder".to_owned())),
            4 => case.with(name, "{\"type\":\"single\",\"name\":\"n\"}"),
            _ => case
                .with(name, format!("{{\"name\":\"of {}\",\"plugins\":[{{\"type\":\"x\"}}]}}", name.len())),
        };
    }
    case.with("target", "{\"name\":\"t\",\"type\":\"t\",\"plugins\":[{\"type\":\"x\"}]}")
        .with_item("folder", Item::Dir)
}

/// A list or a single configuration.
pub fn file(random: &mut Random, single: bool) -> Vec<u8> {
    let bytes = if single { object(random, true) } else { list(random) };
    if random.once_in(8) { mutated(random, &bytes) } else { bytes }
}

/// A file after a few random changes of its bytes.
pub fn mutated(random: &mut Random, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len() + 1);
        let end = (at + random.below(12)).min(bytes.len());
        match random.below(6) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => drop(bytes.splice(at..at, random.pick(TOKENS).iter().copied())),
            3 => drop(bytes.splice(at..end, random.pick(TOKENS).iter().copied())),
            4 => {
                let copy = bytes.get(at..end).unwrap_or_default().to_vec();
                let to = random.below(bytes.len() + 1);
                drop(bytes.splice(to..to, copy));
            }
            _ => {
                let noise = u8::try_from(random.below(256)).unwrap_or_default();
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = noise;
                }
            }
        }
    }
    bytes
}

/// The same JSON with other white space.
pub fn respaced(random: &mut Random, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() * 2);
    let mut in_string = false;
    let mut escaped = false;
    let (add, drop) = (3 + random.below(40), 2 + random.below(40));
    for byte in bytes {
        if in_string {
            in_string = escaped || *byte != b'"';
            escaped = !escaped && *byte == b'\\';
        } else if matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
            if random.once_in(drop) {
                continue;
            }
        } else {
            in_string = *byte == b'"';
            if random.once_in(add) && matches!(byte, b'{' | b'}' | b'[' | b']' | b':' | b',' | b'"') {
                out.extend(space(random));
            }
        }
        out.push(*byte);
    }
    out
}

fn list(random: &mut Random) -> Vec<u8> {
    let mut members: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    let mut add = |key: &[u8], value: Vec<u8>| members.push((key.to_vec(), value));
    if !random.once_in(20) {
        add(b"\"name\"", if random.once_in(6) { random.pick(NAMES).to_vec() } else { b"\"cbr0\"".to_vec() });
    }
    if !random.once_in(4) {
        add(
            b"\"cniVersion\"",
            if random.once_in(6) { random.pick(VERSIONS) } else { &b"\"0.3.1\""[..] }.to_vec(),
        );
    }
    if !random.once_in(12) {
        add(b"\"plugins\"", plugins(random));
    }
    if random.once_in(6) {
        add(b"\"cniVersions\"", array(random, 5, |random| random.pick(VERSIONS).to_vec()));
    }
    for key in [&b"\"disableCheck\""[..], b"\"disableGC\"", b"\"loadOnlyInlinedPlugins\""] {
        if random.once_in(8) {
            add(
                key,
                random
                    .pick(&[&b"true"[..], b"false", b"\"true\"", b"\"False\"", b"\"yes\"", b"null", b"1"])
                    .to_vec(),
            );
        }
    }
    for _ in 0..random.below(3) {
        let value = if random.once_in(2) { plugins(random) } else { value(random, 3) };
        let key = *random.pick(LIST_KEYS);
        add(key, value);
    }
    for at in (1..members.len()).rev() {
        members.swap(at, random.below(at + 1));
    }
    [space(random), braces(random, members), space(random)].concat()
}

fn plugins(random: &mut Random) -> Vec<u8> {
    if random.once_in(20) { value(random, 2) } else { array(random, 5, |random| object(random, false)) }
}

/// An entry, or a single configuration.
fn object(random: &mut Random, single: bool) -> Vec<u8> {
    if random.once_in(40) {
        return value(random, 2);
    }
    let mut members: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    if !random.once_in(20) {
        let odd = random.once_in(5);
        members.push((
            b"\"type\"".to_vec(),
            if odd { random.pick(TYPES) } else { &b"\"flannel\""[..] }.to_vec(),
        ));
    }
    let times = if single { 6 } else { 4 };
    for _ in 0..random.below(times) {
        let key = *random.pick(ENTRY_KEYS);
        let right = !random.once_in(6);
        let lower = String::from_utf8_lossy(key).to_lowercase();
        let value = match lower.trim_matches('"') {
            "type" | "t\\u0079pe" if right => random.pick(TYPES).to_vec(),
            "name" if right => random.pick(NAMES).to_vec(),
            "cniversion" | "cniver\u{17f}ion" if right => random.pick(VERSIONS).to_vec(),
            "ipam" if right => {
                let key = random.pick(&[&b"\"type\""[..], b"\"Type\"", b"\"subnet\""]).to_vec();
                let value = random.pick(&[&b"\"host-local\""[..], b"null", b"1"]).to_vec();
                braces(random, vec![(key, value)])
            }
            "dns" | "dn\u{17f}" if right => {
                let key = random
                    .pick(&[
                        &b"\"nameservers\""[..],
                        b"\"domain\"",
                        b"\"SEARCH\"",
                        b"\"option\xC5\xBF\"",
                        b"\"x\"",
                    ])
                    .to_vec();
                let value = random.pick(&[&b"[]"[..], b"[\"a\",null]", b"\"d\"", b"[1]", b"null"]).to_vec();
                braces(random, vec![(key, value)])
            }
            "capabilities" | "capabilitie\u{17f}" if right => {
                let value = random.pick(&[&b"true"[..], b"false", b"null", b"1", b"\"true\""]).to_vec();
                braces(random, vec![(b"\"portMappings\"".to_vec(), value)])
            }
            "cni.dev/valid-attachments" if right => random
                .pick(&[
                    &b"[]"[..],
                    b"[{\"containerID\":\"a\",\"ifname\":\"b\"}]",
                    b"[{\"ContainerId\":1}]",
                    b"[null]",
                    b"[1]",
                    b"{}",
                ])
                .to_vec(),
            _ => value(random, 3),
        };
        members.push((key.to_vec(), value));
    }
    for at in (1..members.len()).rev() {
        members.swap(at, random.below(at + 1));
    }
    braces(random, members)
}

fn value(random: &mut Random, depth: usize) -> Vec<u8> {
    if depth == 0 || !random.once_in(4) {
        return random.pick(SCALARS).to_vec();
    }
    if random.once_in(2) {
        return array(random, 4, |random| value(random, depth - 1));
    }
    let mut members = Vec::new();
    for _ in 0..random.below(4) {
        members.push((random.pick(ENTRY_KEYS).to_vec(), value(random, depth - 1)));
    }
    braces(random, members)
}

fn array(random: &mut Random, most: usize, mut item: impl FnMut(&mut Random) -> Vec<u8>) -> Vec<u8> {
    let mut out = b"[".to_vec();
    for index in 0..random.below(most) {
        out.extend(if index > 0 { &b","[..] } else { b"" });
        out.extend(space(random));
        out.extend(item(random));
        out.extend(space(random));
    }
    out.push(b']');
    out
}

fn braces(random: &mut Random, members: Vec<(Vec<u8>, Vec<u8>)>) -> Vec<u8> {
    let mut out = b"{".to_vec();
    for (index, (key, value)) in members.into_iter().enumerate() {
        out.extend(if index > 0 { &b","[..] } else { b"" });
        out.extend(
            [space(random), key, space(random), b":".to_vec(), space(random), value, space(random)].concat(),
        );
    }
    out.push(b'}');
    out
}

fn space(random: &mut Random) -> Vec<u8> {
    random.pick(SPACES).to_vec()
}
