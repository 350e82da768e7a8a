//! The commands that are allowed, as usage lines: one group for each program or family.

/// What one rule allows.
pub(super) struct Group {
    /// The end of the rule's id.
    pub id: &'static str,
    pub about: &'static str,
    pub forms: &'static [&'static str],
    /// What has to hold beside the form.
    pub when: Option<&'static str>,
}

const fn group(id: &'static str, about: &'static str, forms: &'static [&'static str]) -> Group {
    Group {
        id,
        about,
        forms,
        when: None,
    }
}

/// All groups.
pub(super) const FORMS: &[Group] = &[
    group(
        "ls",
        "names and sizes of files; -R and -L are left out, because they would look at more than the directories named",
        &[
            "ls {-a -A -b -B -c -C -d -f -F -g -G -h -H -i -k -l -m -n -N -o -p -q -Q -r -s -S -t -u -U -v -x -X -1 -Z -I=TEXT -T=NUM -w=NUM --all --almost-all --color=WORD? --directory --full-time --group-directories-first --human-readable --inode --numeric-uid-gid --reverse --size --sort=WORD --time=WORD --time-style=TEXT} [PATH...]",
        ],
    ),
    group(
        "cat",
        "whole files",
        &["cat {-A -b -e -E -n -s -t -T -v --number --show-all --squeeze-blank} PATH..."],
    ),
    group(
        "head",
        "the beginnings of files",
        &[
            "head {-c=WORD -n=WORD -q -v -z -NUM --bytes=WORD --lines=WORD --quiet --verbose} [PATH...]",
        ],
    ),
    group(
        "tail",
        "the ends of files; -f goes on until the command's time is over, -F is left out, because it opens whatever takes the file's place",
        &[
            "tail {-c=WORD -f -n=WORD -q -v -z -NUM --bytes=WORD --follow --lines=WORD --quiet --verbose} [PATH...]",
        ],
    ),
    group(
        "grep",
        "lines of files; -r is left out, because it would read every file below",
        &[
            "grep {-a -c -E -F -G -h -H -i -I -l -L -n -o -q -s -v -w -x -z -A=NUM -B=NUM -C=NUM -NUM -e=TEXT -m=NUM --color=WORD? --count --extended-regexp --fixed-strings --ignore-case --invert-match --line-number --line-regexp --max-count=NUM --only-matching --quiet --regexp=TEXT --word-regexp} TEXT [PATH...]",
        ],
    ),
    group(
        "stat",
        "what is known of files",
        &[
            "stat {-c=TEXT -f -L -t --dereference --file-system --format=TEXT --printf=TEXT --terse} PATH...",
        ],
    ),
    group(
        "file",
        "the types of files",
        &[
            "file {-b -E -h -i -k -L -N -r --brief --dereference --mime --mime-encoding --mime-type} PATH...",
        ],
    ),
    group(
        "wc",
        "how many lines, words and bytes",
        &["wc {-c -l -L -m -w --bytes --chars --lines --words} [PATH...]"],
    ),
    group(
        "sort",
        "lines in order; -o and --compress-program are left out",
        &[
            "sort {-b -c -C -d -f -g -h -i -M -n -R -r -s -u -V -z -k=WORD -t=TEXT --check --field-separator=TEXT --human-numeric-sort --ignore-case --key=WORD --numeric-sort --reverse --stable --unique --version-sort} [PATH...]",
        ],
    ),
    group(
        "uniq",
        "lines without their repetitions; a second file would be written",
        &[
            "uniq {-c -d -D -i -u -z -f=NUM -s=NUM -w=NUM --count --ignore-case --repeated --unique} [PATH]",
        ],
    ),
    group(
        "cut",
        "columns of lines",
        &[
            "cut {-b=WORD -c=WORD -d=TEXT -f=WORD -s -z --bytes=WORD --characters=WORD --delimiter=TEXT --fields=WORD --only-delimited --output-delimiter=TEXT} [PATH...]",
        ],
    ),
    group(
        "du",
        "sizes of directories, by -s or -d 1: deeper ones would be told by their names",
        &[
            "du {-a -b -c -d=0..1 -h -H -k -l -m -P -s -S -x --all --apparent-size --bytes --human-readable --max-depth=0..1 --one-file-system --summarize --total} [PATH...]",
        ],
    ),
    group(
        "df",
        "room on file systems",
        &[
            "df {-a -B=WORD -h -H -i -k -l -P -T -t=WORD -x=WORD --all --human-readable --inodes --local --print-type --total --type=WORD} [PATH...]",
        ],
    ),
    group(
        "ps",
        "processes, without their environments: where ps can make nothing of its options (a user who is not there, -x, -T with -H), it reads all of them again, with an e as environments; so users are named by --user=NAME",
        &[
            "ps {-A -a -c -d -e -f -F -H -j -l -L -M -N -w -y -Z -C=WORD -o=WORD -p=WORD --forest --no-headers --pid=WORD --ppid=WORD --sort=WORD --format=WORD --user=WORD? --User=WORD? --group=WORD? --tty=WORD?} [a|ax|aux|auxf|auxw|auxww|axf|axjf|axo|u|ux|x|-]",
            "ps -u|-U root|NUM",
            "ps -f|-l -u|-U root|NUM",
        ],
    ),
    group(
        "host",
        "the machine's name, kernel, time and users",
        &[
            "hostname {-a -A -d -f -i -I -s -y --alias --all-fqdns --all-ip-addresses --domain --fqdn --ip-address --long --short}",
            "uname {-a -i -m -n -o -p -r -s -v --all --hardware-platform --kernel-name --kernel-release --kernel-version --machine --nodename --operating-system --processor}",
            "whoami",
            "pwd",
            "mount",
            "uptime {-p -s --pretty --since}",
            "id {-g -G -n -r -u -z --group --groups --name --user} [NAME]",
            "date {-I=WORD? -R -u --iso-8601=WORD? --rfc-3339=WORD --rfc-email --utc}",
            "true",
        ],
    ),
    group(
        "memory",
        "memory, load, disks and open files",
        &[
            "free {-b -g -h -k -l -m -t -w --bytes --gibi --giga --human --kibi --mebi --mega --total --wide}",
            "vmstat {-a -d -D -f -m -n -s -t -w -S=WORD} [NUM 1..10]",
            "top -bn1",
            "top -b -n 1",
            "lsof {-a -b -l -n -N -P -R -t -U -w -X -c=WORD -d=WORD -g=NUM -i=WORD? -p=WORD -u=WORD} [PATH...]",
            "lsblk {-a -b -d -D -f -i -J -l -m -n -O -p -P -r -s -S -t -z -e=WORD -I=WORD -M -o=WORD -x=WORD --all --bytes --fs --json --list --noheadings --nodeps --output=WORD --output-all --pairs --paths --perms --raw --topology} [PATH...]",
            "blkid {-k -l -o=WORD -s=WORD -t=TEXT -L=TEXT -U=WORD} [PATH...]",
        ],
    ),
    Group {
        id: "printenv",
        about: "variables of the login that tell where and how it is; others may be secrets",
        forms: &["printenv NAME..."],
        when: Some(
            "operands.all(name, name in ['HOME', 'HOSTNAME', 'LANG', 'LANGUAGE', 'LOGNAME', 'MAIL', 'PATH', 'PWD', 'SHELL', 'SSH_CLIENT', 'SSH_CONNECTION', 'TERM', 'TZ', 'USER', 'XDG_RUNTIME_DIR'] || name.startsWith('LC_'))",
        ),
    },
    group(
        "sockets",
        "sockets and what is connected; ss -K would close them",
        &[
            "netstat {-4 -6 -a -e -g -i -l -M -n -o -p -r -s -t -u -w -W -x --all --extend --groups --interfaces --listening --numeric --programs --route --statistics --tcp --udp --unix --wide}",
            "ss {-0 -4 -6 -a -b -d -e -g -H -i -l -m -M -n -o -O -p -r -s -S -t -T -u -w -x -Z --all --extended --info --ipv4 --ipv6 --listening --memory --no-header --numeric --oneline --options --packet --processes --resolve --summary --tcp --udp --unix} [state|exclude NAME]",
            "conntrack -L",
        ],
    ),
    group(
        "ip",
        "addresses, routes, links and neighbours",
        &[
            "ip [-4|-6|-j|-json|-p|-pretty|-d|-details|-s|-stats|-statistics|-br|-brief|-o|-oneline] [-4|-6|-j|-json|-p|-pretty|-d|-details|-s|-stats|-statistics|-br|-brief|-o|-oneline] [-4|-6|-j|-json|-p|-pretty|-d|-details|-s|-stats|-statistics|-br|-brief|-o|-oneline] [-4|-6|-j|-json|-p|-pretty|-d|-details|-s|-stats|-statistics|-br|-brief|-o|-oneline] [-4|-6|-j|-json|-p|-pretty|-d|-details|-s|-stats|-statistics|-br|-brief|-o|-oneline] link|l|addr|address|a|route|r|rule|neigh|neighbour|neighbor|n|tunnel|maddr|maddress|vrf [show|list|ls [NAME...]]",
            "ip [-j|-json] netns list|ls",
            "ip [-j|-json] netns identify [NUM]",
            "ip [-j|-json] -n|-netns IF link|addr|address|route show|list [NAME...]",
        ],
    ),
    group(
        "network",
        "drivers, queues, bridges and packet filters",
        &[
            "ethtool [-S|-i|-k|-g|-a|-c|-m|-n|-T] IF",
            "tc [-j|-s|-d] [-j|-s|-d] [-j|-s|-d] qdisc|class|filter|action show|list|ls [dev IF]",
            "bridge [-j|-s|-d] [-j|-s|-d] [-j|-s|-d] link|fdb|vlan|mdb show [dev IF]",
            "nft [-j|-a] [-j|-a] list ruleset|tables|chains|sets|maps [ip|ip6|inet|arp|bridge|netdev]",
            "nft [-j|-a] [-j|-a] list table|chain|set|map NAME [NAME] [NAME]",
            "iptables|ip6tables {-L -n -S -t=NAME -v -x --line-numbers --list --list-rules --numeric --table=NAME --verbose} [NAME]",
        ],
    ),
    Group {
        id: "sysctl",
        about: "the kernel's network settings; what has a = would be written",
        forms: &["sysctl {-e -n} NAME..."],
        when: Some(
            "operands.all(name, (name.startsWith('net.') || name.startsWith('net/')) && !name.contains('..') && !name.contains('//'))",
        ),
    },
    group(
        "reach",
        "names and ways, a few packets each",
        &[
            "dig [+short] HOST",
            "dig [+short] -x HOST",
            "nslookup HOST",
            "host HOST",
            "ping|ping6 -c 1..5 HOST",
            "traceroute|traceroute6 -m 1..15 HOST",
            "mtr --report -c 1..5 HOST",
            "mtr -c 1..5 --report HOST",
        ],
    ),
    group(
        "services",
        "how services are; of show only what tells no variables of a service",
        &[
            "systemctl status|is-active|is-enabled|is-failed {--no-pager --full -l} NAME",
            "systemctl show -p ActiveState|SubState|LoadState|UnitFileState|MainPID|NRestarts|Result|ExecMainStatus|MemoryCurrent|FragmentPath NAME",
            "systemctl show --property=ActiveState|--property=SubState|--property=LoadState|--property=UnitFileState|--property=MainPID|--property=NRestarts|--property=Result|--property=ExecMainStatus|--property=MemoryCurrent|--property=FragmentPath NAME",
            "systemctl list-units|list-unit-files|list-timers {--no-pager --all --failed --full -a -l}",
        ],
    ),
];
