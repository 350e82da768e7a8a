//! Programs that look or change something by their words, and no option alone says which: only forms that are known to
//! look count as that. Whatever else they are told may do anything.

/// Options of `ip`, `tc` and `bridge` that change what is shown, and nothing else.
const SHOWS: [&str; 26] = [
    "-4",
    "-6",
    "-a",
    "-all",
    "-br",
    "-brief",
    "-c",
    "-color",
    "-d",
    "-details",
    "-h",
    "-human",
    "-j",
    "-json",
    "-N",
    "-Numeric",
    "-o",
    "-oneline",
    "-p",
    "-pretty",
    "-r",
    "-resolve",
    "-s",
    "-statistics",
    "-stats",
    "-0",
];
/// The same of `nft`.
const NFT_SHOWS: [&str; 6] = ["-a", "-j", "-n", "-s", "-t", "-y"];
const LISTS: [&str; 4] = ["show", "list", "ls", "lst"];

/// Options with which `iptables` lists rules.
const IPTABLES_LISTS: [&str; 4] = ["-L", "-S", "--list", "--list-rules"];
/// Options that may stand beside them.
const IPTABLES_SHOWS: [&str; 7] = [
    "-n",
    "-v",
    "-x",
    "--numeric",
    "--verbose",
    "--exact",
    "--line-numbers",
];
/// Options with which `hostname` shows a name or an address.
const HOSTNAME_SHOWS: [&str; 16] = [
    "-a",
    "-A",
    "-d",
    "-f",
    "-i",
    "-I",
    "-s",
    "-y",
    "--alias",
    "--all-fqdns",
    "--all-ip-addresses",
    "--domain",
    "--fqdn",
    "--ip-address",
    "--long",
    "--short",
];

/// Options of `systemctl` that change what is shown.
const SYSTEMCTL_SHOWS: [&str; 17] = [
    "--",
    "--after",
    "--all",
    "--before",
    "--failed",
    "--full",
    "--no-ask-password",
    "--no-legend",
    "--no-pager",
    "--plain",
    "--quiet",
    "--recursive",
    "--reverse",
    "--show-types",
    "--system",
    "--user",
    "--value",
];
/// The same with a value behind `=`.
const SYSTEMCTL_VALUES: [&str; 6] = [
    "--legend",
    "--lines",
    "--output",
    "--property",
    "--state",
    "--type",
];

/// Whether these words of a program only look; `None` for a program about which that is not asked here.
pub(super) fn looks(name: &str, words: &[String]) -> Option<bool> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (options, operands): (Vec<&str>, Vec<&str>) =
        words.iter().partition(|word| word.starts_with('-'));
    let only = |allowed: &[&str]| options.iter().all(|option| allowed.contains(option));
    let verb = |at: usize| operands.get(at).is_none_or(|verb| LISTS.contains(verb));
    Some(match name {
        "ip" => ip(&words),
        "tc" | "bridge" => only(&SHOWS) && !operands.is_empty() && verb(1),
        // It puts its words together again and reads several commands in them.
        "nft" => {
            let is_one = |word: &&str| {
                word.chars()
                    .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
            };
            only(&NFT_SHOWS) && operands.first() == Some(&"list") && operands.iter().all(is_one)
        }
        "iptables" | "ip6tables" => iptables(&options),
        "conntrack" => words == ["-L"],
        "ethtool" => {
            options.len() <= 1
                && operands.len() == 1
                && only(&["-S", "-i", "-k", "-g", "-a", "-c", "-m", "-n", "-T"])
        }
        // `net.//.kernel` is `net/../kernel`. With `-a` it shows all there is, whatever is named.
        "sysctl" => {
            let leaves = |word: &str| ["=", "..", "//"].iter().any(|of| word.contains(of));
            let known = if operands.is_empty() { "aen" } else { "en" };
            options.iter().all(|word| are_of(word, known))
                && !operands.iter().any(|word| leaves(word))
        }
        "mount" => words.is_empty(),
        "hostname" => {
            let shows = |word: &&str| HOSTNAME_SHOWS.contains(word) || are_of(word, "aAdfiIsy");
            operands.is_empty() && options.iter().all(shows)
        }
        "date" => {
            operands.iter().all(|word| word.starts_with('+'))
                && !options.iter().any(|word| sets_date(word))
        }
        // `-D` writes a file.
        "ss" => !options.iter().any(|word| match word.strip_prefix("--") {
            Some(long) => long.starts_with('k') || long.starts_with("di"),
            None => word.contains(['K', 'D']),
        }),
        // What it reads stands in a file.
        "sort" | "wc" | "du" | "file" if options.iter().any(|word| reads_names(name, word)) => {
            false
        }
        // The word behind another option may be its value, and the verb another one; at another machine it does what
        // that one is told.
        "systemctl" if !options.iter().all(|word| is_of_systemctl(word)) => false,
        _ => return None,
    })
}

/// Whether an option has a program read the files that another file names; a long one may be cut short.
fn reads_names(program: &str, word: &str) -> bool {
    match word.strip_prefix("--") {
        Some(long) => {
            let name = long.split('=').next().unwrap_or_default();
            !name.is_empty()
                && ["files0-from", "files-from"]
                    .iter()
                    .any(|of| of.starts_with(name))
        }
        None => program == "file" && word.contains('f'),
    }
}

/// Whether an option of `systemctl` changes what is shown of this machine, and nothing else.
fn is_of_systemctl(word: &str) -> bool {
    match word.split_once('=') {
        Some((long, _)) => SYSTEMCTL_VALUES.contains(&long),
        None if word.starts_with("--") => SYSTEMCTL_SHOWS.contains(&word),
        None => {
            // What stands behind these letters is their value.
            let flags = word.split(['n', 'o', 'p', 'P', 't']).next();
            let flags = flags.unwrap_or_default();
            flags == "-" || are_of(flags, "aqlrT")
        }
    }
}

/// Whether an option of `date` sets it: `-s` may stand behind other letters, and `--set` may be cut short.
fn sets_date(word: &str) -> bool {
    match word.strip_prefix("--") {
        Some(long) => {
            let name = long.split('=').next().unwrap_or_default();
            !name.is_empty() && "set".starts_with(name)
        }
        // What stands behind these letters is their value.
        None => {
            !["-I", "-d", "-r"]
                .iter()
                .any(|letter| word.starts_with(letter))
                && word.contains('s')
        }
    }
}

/// Whether a word is short options, all of them among these letters.
fn are_of(word: &str, letters: &str) -> bool {
    let own = word.strip_prefix('-').unwrap_or_default();
    !own.is_empty() && own.chars().all(|letter| letters.contains(letter))
}

/// Options of `iptables`: it lists, and does nothing else. A table is named behind `-t` or in the next word.
fn iptables(options: &[&str]) -> bool {
    let mut lists = false;
    let all = options.iter().all(|word| {
        lists |= IPTABLES_LISTS.contains(word);
        if IPTABLES_LISTS.contains(word) || IPTABLES_SHOWS.contains(word) {
            return true;
        }
        if word.starts_with("--") {
            return *word == "--table" || word.starts_with("--table=");
        }
        let own = word.split('t').next().unwrap_or_default();
        lists |= own.contains(['L', 'S']);
        own == "-" || are_of(own, "LSnvx")
    });
    all && lists
}

/// `ip [OPTIONS] OBJECT [show …]`, or in a namespace of a name.
fn ip(words: &[&str]) -> bool {
    let mut rest = words;
    while let [first, others @ ..] = rest {
        rest = match (*first, others) {
            ("-n" | "-netns", [_, others @ ..]) => others,
            (option, _) if SHOWS.contains(&option) => others,
            _ => break,
        };
    }
    match rest {
        [object] => !object.starts_with('-') && *object != "monitor",
        ["netns", verb, ..] => LISTS.contains(verb) || *verb == "identify",
        [object, verb, ..] => !object.starts_with('-') && LISTS.contains(verb),
        [] => true,
    }
}

#[cfg(test)]
mod tests {
    use gate::facts::Operation;

    use super::super::Command;

    #[test]
    fn what_is_not_known_to_look_may_do_anything() {
        let operation = |line: &str| Command::read(line).unwrap().uses().operation;
        for line in [
            "ip -j addr show dev eth0",
            "ip -4 -br link",
            "ip -n blue route show",
            "ip netns identify 1",
            "tc -s qdisc show",
            "bridge link",
            "nft -j list ruleset",
            "iptables -t nat -L -n",
            "iptables -nvL INPUT",
            "iptables -nvLt nat",
            "iptables -tnat -S",
            "iptables --table=nat --list",
            "conntrack -L",
            "ethtool -i eth0",
            "sysctl net.core",
            "mount",
            "hostname -f",
            "hostname -Is",
            "sysctl -ne net.core",
            "sysctl -an",
            "date +%s",
            "date -u",
            "date -Iseconds",
            "ss -tlnp",
            "sort -u /tmp/x",
            "file -b /tmp/x",
            "systemctl status x",
            "systemctl -ln 5 -o short status x --no-pager",
            "systemctl --lines=5 --property=Id show x",
        ] {
            assert_eq!(operation(line), Operation::Read, "{line}");
        }
        for line in [
            "ip link set eth0 down",
            "ip link delete show",
            "ip -batch /tmp/x",
            "ip -b /tmp/x",
            "ip -force addr show",
            "ip netns exec a id",
            "ip vrf exec a id",
            "ip addr add 10.0.0.1 dev show",
            "tc qdisc add dev show",
            "nft flush ruleset",
            "nft -f /tmp/x",
            "nft list 'ruleset; flush ruleset'",
            "iptables -L -F",
            "iptables -A INPUT",
            "iptables -LZ",
            "iptables -nvLF",
            "iptables -t nat",
            "iptables -n",
            "iptables --flush -L",
            "hostname -bf x",
            "conntrack -L -F",
            "ethtool -s eth0",
            "ethtool -f eth0",
            "sysctl net.x=1",
            "sysctl -w net.x",
            "sysctl net/../kernel/hostname",
            "sysctl net.//.kernel.hostname",
            "sysctl -p",
            "sysctl -a net.core",
            "sysctl -na net.core",
            "mount /dev/sda /mnt",
            "hostname evil",
            "hostname -F /etc/x",
            "date -s 12:00",
            "date --se=12:00",
            "date -us12:00",
            "date 01010000",
            "ss -tK",
            "ss --kill",
            "ss -tD /tmp/x",
            "ss --diag=/tmp/x",
            "bridge fdb del x",
            "sort --files0-from=/tmp/list",
            "sort --fil /tmp/list",
            "wc --f=/tmp/list",
            "du --files0-from /tmp/list",
            "file -bf /tmp/list",
            "file --files-from=/tmp/list",
            "systemctl -H other status x",
            "systemctl --ho=other status x",
            "systemctl status --machine other x",
            // The word behind such an option is its value, and the verb the next one.
            "systemctl --property status stop x",
            "systemctl --prop status stop x",
            "systemctl --job-mode status stop x",
            "systemctl -lC status stop x",
            "systemctl -s status kill x",
            "systemctl --root=/x is-enabled y",
        ] {
            assert_ne!(operation(line), Operation::Read, "{line}");
        }
    }

    #[test]
    fn whole_paths_in_the_words_of_such_programs_are_paths() {
        let paths = |line: &str| {
            let command = Command::read(line).unwrap();
            let uses = command.uses();
            let paths = uses
                .operands
                .iter()
                .filter(|of| of.part == super::super::Part::Path);
            paths.map(|of| of.text.to_owned()).collect::<Vec<_>>()
        };
        for (line, expected) in [
            ("date -f /etc/shadow", vec!["/etc/shadow"]),
            ("date -r/etc/shadow", vec!["/etc/shadow"]),
            ("date --file=/etc/shadow", vec!["/etc/shadow"]),
            ("date --file /etc/shadow", vec!["/etc/shadow"]),
            ("ip -batch /etc/shadow", vec!["/etc/shadow"]),
            ("dig -f ../x", vec!["../x"]),
            ("sysctl -p/etc/shadow", vec!["/etc/shadow"]),
            ("sysctl net/ipv4/ip_forward", vec![]),
            ("ip route show 10.0.0.0/8", vec![]),
            ("date +/%Y", vec![]),
            // Files that a program reads by an option, however they are spelled.
            ("date -f .ssh/id", vec![".ssh/id"]),
            ("date -f.ssh/id", vec![".ssh/id"]),
            ("date -uf id", vec!["id"]),
            ("date --file=id", vec!["id"]),
            ("date --fi id", vec!["id"]),
            ("date --reference=id", vec!["id"]),
            ("dig -f .ssh/id", vec![".ssh/id"]),
            ("dig -k key", vec!["key"]),
            ("ss -tF .ssh/id", vec![".ssh/id"]),
            ("ss --filter=id", vec!["id"]),
            ("mtr --report -F .ssh/id", vec![".ssh/id"]),
            ("mtr --filename id", vec!["id"]),
            ("hostname -F id", vec!["id"]),
            ("sysctl -p id", vec!["id"]),
            ("sysctl --load=id", vec!["id"]),
            ("nft -f id", vec!["id"]),
            ("ip -b .ssh/id", vec![".ssh/id"]),
            ("ip -force -bat id", vec!["id"]),
            ("tc -batch id", vec!["id"]),
            ("blkid -c id", vec!["id"]),
            ("ip -br link", vec![]),
            ("date -d yesterday", vec![]),
        ] {
            assert_eq!(paths(line), expected, "{line}");
        }
    }
}
