//! Hosts of URLs: every spelling of an address as one text, and its class.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use percent_encoding::percent_decode_str;
use unicode_normalization::UnicodeNormalization as _;

/// The class of the address that a URL leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressClass {
    /// This machine.
    Loopback,
    /// A network that is not reachable from everywhere: private, shared, reserved, multicast.
    Private,
    /// The same link.
    LinkLocal,
    /// The metadata service of a cloud.
    Metadata,
    /// An address that is reachable from everywhere.
    Public,
    /// A name that only DNS resolves.
    Name,
}

impl AddressClass {
    /// All classes, in the order of the reference.
    pub const ALL: [Self; 6] = [
        Self::Loopback,
        Self::Private,
        Self::LinkLocal,
        Self::Metadata,
        Self::Public,
        Self::Name,
    ];

    /// Returns the word used in policies and in the journal.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::Private => "private",
            Self::LinkLocal => "link_local",
            Self::Metadata => "metadata",
            Self::Public => "public",
            Self::Name => "name",
        }
    }

    /// Returns the words of all classes.
    #[must_use]
    pub fn labels() -> Vec<&'static str> {
        Self::ALL.map(Self::label).to_vec()
    }

    /// Returns the class that a metadata service's address has besides; absent for other hosts.
    #[must_use]
    pub fn beside_metadata(host: &str) -> Option<Self> {
        match host.trim_matches(['[', ']']).parse().ok()? {
            IpAddr::V4(v4) if METADATA_V4.contains(&v4) => Some(plain_v4(v4)),
            IpAddr::V6(v6) if METADATA_V6.contains(&v6) => Some(Self::Private),
            IpAddr::V4(_) | IpAddr::V6(_) => None,
        }
    }

    /// Returns the class of an address.
    #[must_use]
    pub fn of_address(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => of_v4(v4),
            IpAddr::V6(v6) => of_v6(v6),
        }
    }
}

/// Metadata services with an IPv4 address: AWS, Azure and Google; AWS ECS and EKS; Alibaba; Oracle; Azure's wire server.
const METADATA_V4: [Ipv4Addr; 6] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(169, 254, 170, 23),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(168, 63, 129, 16),
];
/// The same with an IPv6 address: AWS EC2, EKS and Google.
const METADATA_V6: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];
/// Names of metadata services that resolve inside of a cloud.
const METADATA_NAMES: [&str; 5] = [
    "metadata.google.internal",
    "metadata.goog",
    "metadata",
    "instance-data",
    "instance-data.ec2.internal",
];
/// Names of this machine that need no DNS.
const LOOPBACK_NAMES: [&str; 6] = [
    "localhost",
    "localhost.localdomain",
    "localhost6",
    "localhost6.localdomain6",
    "ip6-localhost",
    "ip6-loopback",
];
/// Other texts of this machine: what listens at one usually answers at all.
const LOOPBACK_ALIASES: [&str; 5] = ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "[::]"];
/// Other texts of the metadata service at 169.254.169.254.
const METADATA_ALIASES: [&str; 7] = [
    "169.254.169.254",
    "[fd00:ec2::254]",
    "metadata.google.internal",
    "metadata.goog",
    "metadata",
    "instance-data",
    "instance-data.ec2.internal",
];

/// Returns the other canonical texts of a host, for rules that refuse or ask.
#[must_use]
pub fn host_aliases(host: &str, class: Option<AddressClass>) -> &'static [&'static str] {
    match class {
        Some(AddressClass::Loopback) => &LOOPBACK_ALIASES,
        Some(AddressClass::Metadata) if METADATA_ALIASES.contains(&host) => &METADATA_ALIASES,
        _ => &[],
    }
}

fn of_v4(address: Ipv4Addr) -> AddressClass {
    match METADATA_V4.contains(&address) {
        true => AddressClass::Metadata,
        false => plain_v4(address),
    }
}

fn plain_v4(address: Ipv4Addr) -> AddressClass {
    let [a, b, c, _] = address.octets();
    if address.is_loopback() || address.is_unspecified() {
        AddressClass::Loopback
    } else if address.is_link_local() {
        AddressClass::LinkLocal
    } else if address.is_private()
        || address.is_multicast()
        || address.is_documentation()
        || matches!((a, b, c), (0 | 240..=255, ..) | (100, 64..=127, _))
        || matches!((a, b, c), (192, 0, 0) | (198, 18 | 19, _))
    {
        AddressClass::Private
    } else {
        AddressClass::Public
    }
}

fn of_v6(address: Ipv6Addr) -> AddressClass {
    let [first, second, ..] = address.segments();
    if METADATA_V6.contains(&address) {
        AddressClass::Metadata
    } else if address.is_loopback() || address.is_unspecified() {
        AddressClass::Loopback
    } else if first & 0xffc0 == 0xfe80 {
        AddressClass::LinkLocal
    } else if first & 0xe000 == 0x2000 && (first, second) != (0x2001, 0xdb8) {
        AddressClass::Public
    } else {
        // Unique local, site local, multicast, documentation, and what is not assigned.
        AddressClass::Private
    }
}

/// A host in canonical form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CanonicalHost {
    pub text: String,
    pub class: AddressClass,
}

impl CanonicalHost {
    fn of_address(address: IpAddr) -> Self {
        let text = match address {
            IpAddr::V4(v4) => v4.to_string(),
            IpAddr::V6(v6) => format!("[{v6}]"),
        };
        Self {
            text,
            class: AddressClass::of_address(address),
        }
    }

    fn of_name(name: &str) -> Self {
        let class = if LOOPBACK_NAMES.contains(&name) || name.ends_with(".localhost") {
            AddressClass::Loopback
        } else if METADATA_NAMES.contains(&name) {
            AddressClass::Metadata
        } else {
            AddressClass::Name
        };
        Self {
            text: name.to_owned(),
            class,
        }
    }
}

/// The readings of one host.
#[derive(Debug, Default)]
pub(super) struct HostReadings {
    pub hosts: Vec<CanonicalHost>,
    pub uncertain: bool,
}

impl HostReadings {
    fn add(&mut self, host: CanonicalHost) {
        if !self.hosts.contains(&host) {
            self.hosts.push(host);
        }
    }

    fn add_v4(&mut self, bits: u32) {
        self.add(CanonicalHost::of_address(Ipv4Addr::from_bits(bits).into()));
    }
}

/// Most layers of percent-encoding that are taken off a host.
const DECODINGS_MAX: usize = 3;
/// Longest host that is read, in bytes: a name has 253 characters, each encoded three times.
const HOST_BYTES_MAX: usize = 4 * 1024;

/// Reads a host as it stands in a URL, brackets included, in every way a reader might.
pub(super) fn hosts(raw: &str) -> HostReadings {
    let mut out = HostReadings::default();
    if raw.len() > HOST_BYTES_MAX {
        out.uncertain = true;
        return out;
    }
    let mut layer = raw.to_owned();
    for round in 0..=DECODINGS_MAX {
        one_layer(&layer, &mut out);
        let next = percent_decode_str(&layer).decode_utf8_lossy().into_owned();
        if next == layer {
            break;
        }
        // A percent sign is in no name: the text as it stands leads nowhere.
        if round == 0 {
            out = HostReadings::default();
        }
        layer = next;
    }
    out
}

fn one_layer(text: &str, out: &mut HostReadings) {
    let plain: String = text.nfkc().filter(|c| !is_dropped(*c)).collect();
    let plain = plain.replace(['\u{3002}', '\u{ff0e}', '\u{ff61}'], ".");
    let plain = plain.to_lowercase();
    let plain = plain.trim_end_matches('.');
    if let Some(inside) = plain.strip_prefix('[') {
        let inside = inside.strip_suffix(']');
        // A zone does not change the address.
        let address = inside.and_then(|inside| inside.split('%').next());
        match address.map(str::parse::<Ipv6Addr>) {
            Some(Ok(address)) => add_v6(address, out),
            Some(Err(_)) | None => out.uncertain = true,
        }
        return;
    }
    let is_address = add_numbers(plain, out);
    if is_address {
        return;
    }
    if let Some(name) = name_of(plain) {
        out.add(CanonicalHost::of_name(&name));
    } else if !plain.contains('%') {
        out.uncertain = true;
    }
    if plain.contains(['ß', 'ς', '\u{200c}', '\u{200d}']) {
        // IDNA 2003 maps these, IDNA 2008 keeps them.
        let mapped = plain.replace('ß', "ss").replace('ς', "σ");
        let mapped = mapped.replace(['\u{200c}', '\u{200d}'], "");
        let name = name_of(&mapped);
        out.hosts
            .extend(name.map(|name| CanonicalHost::of_name(&name)));
    }
}

/// Returns whether readers drop a character from a host: soft hyphens, joiners without a width, tabs and line ends.
fn is_dropped(c: char) -> bool {
    matches!(
        c,
        '\t' | '\n'
            | '\r'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{200b}'
            | '\u{2060}'
            | '\u{2064}'
            | '\u{feff}'
    ) || ('\u{fe00}'..='\u{fe0f}').contains(&c)
}

/// Returns a name in ASCII; absent where it is none.
fn name_of(text: &str) -> Option<String> {
    if text.is_empty() {
        return None;
    }
    match url::Host::parse(text) {
        Ok(url::Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            (!name.is_empty()).then(|| name.to_owned())
        }
        Ok(url::Host::Ipv4(_) | url::Host::Ipv6(_)) | Err(_) => None,
    }
}

fn add_v6(address: Ipv6Addr, out: &mut HostReadings) {
    let segments = address.segments();
    let [a, b, c, d, e, f, g, h] = segments;
    let low = (u32::from(g) << 16) | u32::from(h);
    let is_mapped = matches!((a, b, c, d, e), (0, 0, 0, 0, 0)) && f == 0xffff;
    let is_translated = matches!((a, b, c, d), (0, 0, 0, 0)) && (e, f) == (0xffff, 0);
    let is_compatible = matches!((a, b, c, d, e, f), (0, 0, 0, 0, 0, 0)) && low > 1;
    let is_nat64 = (a, b) == (0x64, 0xff9b);
    if is_mapped || is_translated || is_compatible || is_nat64 {
        out.add_v4(low);
        return;
    }
    out.add(CanonicalHost::of_address(address.into()));
    if a == 0x2002 {
        // A 6to4 relay sends what is inside to the IPv4 address that the prefix names.
        out.add_v4((u32::from(b) << 16) | u32::from(c));
    }
}

/// Adds the addresses that a host of numbers may be; returns false where it is not one.
fn add_numbers(text: &str, out: &mut HostReadings) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let ends_in_number = parts
        .last()
        .is_some_and(|last| number(last, false).is_some());
    let numbers: Option<Vec<u128>> = parts.iter().map(|part| number(part, false)).collect();
    let decimals: Option<Vec<u128>> = parts.iter().map(|part| number(part, true)).collect();
    if parts.len() > 4 || (numbers.is_none() && decimals.is_none()) {
        // `1.2.3.4.5` and `a.1` are names for some readers, and nothing for others.
        out.uncertain |= ends_in_number && !text.is_empty();
        return ends_in_number;
    }
    for numbers in [numbers, decimals].into_iter().flatten() {
        match address_of(&numbers) {
            Some(bits) => out.add_v4(bits),
            None => {
                out.uncertain = true;
                // Readers without a check keep the lowest bits.
                out.add_v4(overflowed(&numbers));
            }
        }
    }
    true
}

/// Reads a part of an IPv4 address as `inet_aton` does: hexadecimal after `0x`, octal after `0`. With `decimal`, zeros
/// at the beginning mean nothing.
fn number(text: &str, decimal: bool) -> Option<u128> {
    const DIGITS_MAX: usize = 64;
    if text.is_empty() || text.len() > DIGITS_MAX {
        return None;
    }
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(_) if decimal => return None,
        Some(hex) => (hex, 16),
        None if !decimal && text.len() > 1 && text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    let digits = digits.trim_start_matches('0');
    if !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    match digits {
        "" => Some(0),
        digits => Some(u128::from_str_radix(digits, radix).unwrap_or(u128::MAX)),
    }
}

/// Returns the address of one to four numbers: the last one fills what the others leave.
fn address_of(numbers: &[u128]) -> Option<u32> {
    let (last, before) = numbers.split_last()?;
    let mut bits: u32 = 0;
    for (at, number) in before.iter().enumerate() {
        let octet = u8::try_from(*number).ok()?;
        bits |= u32::from(octet) << (24 - 8 * at);
    }
    let rest = 32 - 8 * before.len();
    (*last < 1 << rest).then(|| bits | u32::try_from(*last).unwrap_or_default())
}

/// Returns the same of numbers that are too large, each cut to the bits that it has room for.
fn overflowed(numbers: &[u128]) -> u32 {
    let Some((last, before)) = numbers.split_last() else {
        return 0;
    };
    let cut: Vec<u128> = before.iter().map(|number| number & 0xff).collect();
    let rest = 32 - 8 * cut.len();
    let mut cut = cut;
    cut.push(last & ((1 << rest) - 1));
    address_of(&cut).unwrap_or_default()
}

/// Returns the canonical form of a host that has one reading.
pub(crate) fn one_host(raw: &str) -> Option<CanonicalHost> {
    let mut readings = hosts(raw);
    match readings.hosts.len() {
        1 if !readings.uncertain => readings.hosts.pop(),
        _ => None,
    }
}
