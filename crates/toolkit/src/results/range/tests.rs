use super::*;
use proptest::prelude::*;

#[test]
fn ranges_are_read_as_the_standard_says() {
    let parts = |list: &[(u64, u64)]| {
        Ranges::Parts(
            list.iter()
                .map(|(a, b)| ByteRange::new(*a, *b).unwrap())
                .collect(),
        )
    };
    let cases = [
        ("bytes=0-499", 10_000, parts(&[(0, 500)])),
        ("bytes=500-999", 10_000, parts(&[(500, 1000)])),
        ("bytes=-500", 10_000, parts(&[(9500, 10_000)])),
        ("bytes=9500-", 10_000, parts(&[(9500, 10_000)])),
        ("bytes=0-0,-1", 10_000, parts(&[(0, 1), (9999, 10_000)])),
        ("BYTES= 5-6 ,\t1-2", 10, parts(&[(5, 7), (1, 3)])),
        ("bytes=5-99999999999999999999999", 10, parts(&[(5, 10)])),
        ("bytes=-99999999999999999999999", 10, parts(&[(0, 10)])),
        ("bytes=4-5,20-30", 10, parts(&[(4, 6)])),
        ("bytes=10-", 10, Ranges::Unsatisfiable),
        ("bytes=-0", 10, Ranges::Unsatisfiable),
        ("bytes=0-", 0, Ranges::Unsatisfiable),
        ("bytes=-5", 0, Ranges::Unsatisfiable),
        ("bytes=5-4", 10, Ranges::Whole),
        ("bytes=", 10, Ranges::Whole),
        ("bytes=,,", 10, Ranges::Whole),
        ("bytes=a-b", 10, Ranges::Whole),
        ("bytes=+1-2", 10, Ranges::Whole),
        ("bytes=1 - 2", 10, Ranges::Whole),
        ("bytes=1", 10, Ranges::Whole),
        ("bytes=-", 10, Ranges::Whole),
        ("bytes=--1", 10, Ranges::Whole),
        ("lines=0-1", 10, Ranges::Whole),
        ("bytes", 10, Ranges::Whole),
        ("bytes=0-9,0-9", 10, Ranges::Whole),
    ];
    for (header, length, expect) in cases {
        assert_eq!(Ranges::read(header, length), expect, "{header} of {length}");
    }
    let many = format!("bytes={}", vec!["0-0"; RANGES_MAX + 1].join(","));
    assert_eq!(Ranges::read(&many, 1000), Ranges::Whole);
    let part = ByteRange::new(5, 10).unwrap();
    assert_eq!(part.content_range(100), "bytes 5-9/100");
    assert_eq!(ByteRange::new(5, 5), None);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_asked_stays_within_the_whole(header in "(bytes=)?[-0-9, ]{0,40}|\\PC{0,40}", length in 0..500_u64) {
        if let Ranges::Parts(parts) = Ranges::read(&header, length) {
            prop_assert!(!parts.is_empty() && parts.len() <= RANGES_MAX);
            let sum: u64 = parts.iter().map(|part| part.length()).sum();
            prop_assert!(sum <= length);
            for part in parts {
                prop_assert!(part.start() < part.end() && part.end() <= length);
            }
        }
    }

    #[test]
    fn one_range_is_that_range(first in 0..100_u64, more in 0..100_u64, length in 1..150_u64) {
        let read = Ranges::read(&format!("bytes={first}-{}", first + more), length);
        let expect = match ByteRange::new(first, (first + more + 1).min(length)) {
            Some(part) => Ranges::Parts(vec![part]),
            None => Ranges::Unsatisfiable,
        };
        prop_assert_eq!(read, expect);
    }
}
