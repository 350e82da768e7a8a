use super::*;

#[test]
fn known_times_are_written_and_read_back() {
    for (ms, text) in [
        (0, "1970-01-01T00:00:00.000Z"),
        (951_782_400_000, "2000-02-29T00:00:00.000Z"),
        (1_795_232_289_123, "2026-11-21T03:38:09.123Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (LATEST_MS, "9999-12-31T23:59:59.999Z"),
        (EARLIEST_MS, "0000-01-01T00:00:00.000Z"),
    ] {
        assert_eq!(format_utc(ms), text);
        assert_eq!(parse_utc(text), Some(ms));
    }
    assert_eq!(format_utc(i64::MAX), "9999-12-31T23:59:59.999Z");
    assert_eq!(compact(1_795_232_289_123), "20261121T033809123Z");
    assert_eq!(
        parse_compact("20261121T033809123Z"),
        Some(1_795_232_289_123)
    );
    for wrong in [
        "",
        "20261121T033809123",
        "20261121x033809123Z",
        "é0261121T033809123Z",
    ] {
        assert_eq!(parse_compact(wrong), None, "{wrong}");
    }
    assert_eq!(parse_utc("2026-11-21"), parse_utc("2026-11-21T00:00:00Z"));
}

#[test]
fn nonsense_is_refused() {
    for text in [
        "",
        "yesterday",
        "2026-02-31",
        "2026-11-21T24:00:00Z",
        "2026-11-21T03:38",
        "2026-1-2",
        "2026-11-21T03:38:09.1234Z",
    ] {
        assert_eq!(parse_utc(text), None, "{text}");
    }
}

#[test]
fn every_day_of_four_centuries_makes_the_round_trip() {
    for days in -73_000..73_000 {
        let (year, month, day) = civil(days);
        assert_eq!(days_of(year, month, day), days);
    }
}
