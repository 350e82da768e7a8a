//! Tokens that count, and tokens that attack.

use std::collections::BTreeSet;
use std::path::Path;

use gate::identity::{Authenticate as _, Credential, IdentityFault, TokenFault};
use serde_json::{Value, json};

use crate::signer::{TestSigner, encode};
use crate::{Algorithm, IdentityOptions, IssuerOptions, Issuers, TOKEN_BYTES_MAX};

const ISSUER: &str = "https://id.example/realms/t";
const OTHER: &str = "https://id.example/realms/other";
const NOW_MS: i64 = 1_790_000_000_000;
const NOW_S: i64 = NOW_MS / 1_000;

/// Issuers with their keys: RSA `r`, P-256 `e` and Ed25519 `d` of the one, RSA `o` of the other.
struct World {
    rsa: TestSigner,
    p256: TestSigner,
    ed25519: TestSigner,
    issuers: Issuers,
}

fn issuer(url: &str) -> IssuerOptions {
    IssuerOptions {
        issuer: url.to_owned(),
        audiences: vec!["gate".to_owned()],
        algorithms: Algorithm::ALL.to_vec(),
        subject_claim: "sub".to_owned(),
        groups_claim: "groups".to_owned(),
        client_id: Some("cli".to_owned()),
        authorities: None,
    }
}

impl World {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut IdentityOptions)) -> Self {
        let (rsa, p256, ed25519) = (TestSigner::rsa(), TestSigner::p256(), TestSigner::ed25519());
        let mut options = IdentityOptions {
            issuers: vec![issuer(ISSUER), issuer(OTHER)],
            public_url: Some("https://gate.example".to_owned()),
            ..IdentityOptions::default()
        };
        change(&mut options);
        let mut encryption = rsa.jwk("enc");
        encryption["use"] = json!("enc");
        let mut only_ps = rsa.jwk("ps");
        only_ps["alg"] = json!("PS256");
        let keys = json!({"keys": [
            rsa.jwk("r"), p256.jwk("e"), ed25519.jwk("d"), encryption, only_ps,
            {"kty": "oct", "kid": "s", "k": encode([7; 32])},
        ]});
        let others = json!({"keys": [TestSigner::ed25519().jwk("r"), p256.jwk("o")]});
        let issuers = Issuers::new(options)
            .with_keys(ISSUER, keys.to_string().as_bytes(), NOW_MS)
            .with_keys(OTHER, others.to_string().as_bytes(), NOW_MS);
        Self {
            rsa,
            p256,
            ed25519,
            issuers,
        }
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        self.rsa
            .token(Algorithm::Rs256, &header.to_string(), &claims.to_string())
    }

    /// Returns a good token with these changes of header and claims; null removes a member.
    fn token(&self, header: &Value, claims: &Value) -> String {
        self.sign(
            &merged(self::header(), header),
            &merged(self::claims(), claims),
        )
    }

    fn identify_at(
        &self,
        token: &str,
        path: &str,
        now_ms: i64,
    ) -> Result<gate::Caller, TokenFault> {
        let shown = Credential::bearer(token).at_path(Some(path));
        self.issuers
            .identify(&shown, now_ms)
            .map_err(|fault| match fault {
                IdentityFault::Token(fault) => fault,
                other => panic!("{other:?}"),
            })
    }

    fn identify(&self, token: &str) -> Result<gate::Caller, TokenFault> {
        self.identify_at(token, "/mcp/files", NOW_MS)
    }
}

fn header() -> Value {
    json!({"alg": "RS256", "kid": "r", "typ": "JWT"})
}

/// Claims as Keycloak 26 states them.
fn claims() -> Value {
    json!({
        "iss": ISSUER, "sub": "alice", "aud": ["gate", "account"], "exp": NOW_S + 300, "iat": NOW_S,
        "typ": "Bearer", "azp": "cli", "sid": "s-1", "scope": "openid mcp:read", "groups": ["ops"],
    })
}

fn merged(mut base: Value, changes: &Value) -> Value {
    let members = base.as_object_mut().unwrap();
    for (name, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => drop(members.remove(name)),
            value => drop(members.insert(name.clone(), value.clone())),
        }
    }
    base
}

#[test]
fn a_token_of_each_algorithm_names_the_caller() {
    let world = World::new();
    let signers = [
        (&world.rsa, Algorithm::Rs256, "r"),
        (&world.rsa, Algorithm::Ps256, "r"),
        (&world.p256, Algorithm::Es256, "e"),
        (&world.ed25519, Algorithm::EdDsa, "d"),
    ];
    for (signer, algorithm, kid) in signers {
        for typ in ["JWT", "jwt", "at+jwt", "application/at+jwt"] {
            let header = json!({"alg": algorithm.name(), "kid": kid, "typ": typ});
            let token = signer.token(algorithm, &header.to_string(), &claims().to_string());
            let caller = world.identify(&token).unwrap();
            assert_eq!(&*caller.subject, "https://id.example/realms/t#alice");
            assert_eq!(
                caller.groups.iter().map(|g| &**g).collect::<Vec<_>>(),
                ["ops"]
            );
            let sign_in = caller.sign_in.unwrap();
            assert_eq!(&*sign_in.issuer, ISSUER);
            let scopes: Vec<&str> = sign_in.scopes.iter().map(|s| &**s).collect();
            assert_eq!(scopes, ["openid", "mcp:read"]);
            assert_eq!(sign_in.sid.as_deref(), Some("s-1"));
            assert_eq!(sign_in.client_id.as_deref(), Some("cli"));
        }
    }
}

#[test]
fn claims_are_read_as_providers_write_them() {
    let world = World::with(|options| {
        options.issuers[0].subject_claim = "email".to_owned();
        options.issuers[0].groups_claim = "realm_access.roles".to_owned();
    });
    let token = world.token(
        &json!({"typ": null}),
        &json!({
            "email": "alice@example.test", "realm_access": {"roles": ["dev", "dev", "ops"]},
            "scope": null, "scp": ["a", "b"], "exp": 1_790_000_300.5, "nbf": NOW_S, "sid": null, "aud": "gate",
        }),
    );
    let caller = world.identify(&token).unwrap();
    assert_eq!(
        &*caller.subject,
        "https://id.example/realms/t#alice@example.test"
    );
    assert_eq!(caller.groups.len(), 2);
    let sign_in = caller.sign_in.unwrap();
    assert_eq!((sign_in.scopes.len(), &sign_in.sid), (2, &None));
    // A name with dots outranks the way into objects.
    let world = World::with(|options| {
        options.issuers[0].groups_claim = "https://x.example/roles".to_owned();
    });
    let token = world.token(
        &json!({}),
        &json!({"https://x.example/roles": ["a"], "groups": null}),
    );
    assert_eq!(&*world.identify(&token).unwrap().groups[0], "a");
    // Entra ID leaves groups out of a token that would be too long: rules on groups would not see them.
    let world = World::new();
    for overage in [
        json!({"groups": null, "_claim_names": {"groups": "src1"}}),
        json!({"groups": null, "hasgroups": true}),
    ] {
        let token = world.token(&json!({}), &overage);
        assert_eq!(
            world.identify(&token).map(drop),
            Err(TokenFault::GroupsElsewhere)
        );
    }
    let token = world.token(&json!({}), &json!({"groups": null}));
    assert!(world.identify(&token).unwrap().groups.is_empty());
}

/// Attack, token, reason of the refusal.
type Attack = (&'static str, String, TokenFault);

fn of_header(world: &World) -> Vec<Attack> {
    use TokenFault as F;
    let token = |changes: Value| world.token(&changes, &json!({}));
    let unsigned = |alg: &str| {
        let header = merged(header(), &json!({"alg": alg})).to_string();
        format!("{}.{}.", encode(header), encode(claims().to_string()))
    };
    let hmac = |alg: &str, secret: &[u8]| {
        let header = json!({"alg": alg, "kid": "r"}).to_string();
        let signed = format!("{}.{}", encode(header), encode(claims().to_string()));
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
        format!(
            "{signed}.{}",
            encode(ring::hmac::sign(&key, signed.as_bytes()))
        )
    };
    let public = world.rsa.jwk("r").to_string();
    let raw = |header: &str| {
        world
            .rsa
            .token(Algorithm::Rs256, header, &claims().to_string())
    };
    let traversal = |kid: &str| token(json!({"kid": kid}));
    vec![
        ("alg none", unsigned("none"), F::Unsigned),
        ("alg None", unsigned("None"), F::Unsigned),
        ("alg NONE", unsigned("NONE"), F::Unsigned),
        (
            "alg none with a signature",
            token(json!({"alg": "none"})),
            F::Unsigned,
        ),
        (
            "HS256 with the public key as secret",
            hmac("HS256", public.as_bytes()),
            F::Symmetric,
        ),
        (
            "HS256 with an empty secret",
            hmac("HS256", b""),
            F::Symmetric,
        ),
        ("HS384", hmac("HS384", public.as_bytes()), F::Symmetric),
        ("HS512", hmac("HS512", public.as_bytes()), F::Symmetric),
        (
            "an algorithm in another case",
            token(json!({"alg": "rs256"})),
            F::Algorithm,
        ),
        ("RS1", token(json!({"alg": "RS1"})), F::Algorithm),
        ("RS512", token(json!({"alg": "RS512"})), F::Algorithm),
        ("ES256K", token(json!({"alg": "ES256K"})), F::Algorithm),
        (
            "an empty algorithm",
            token(json!({"alg": ""})),
            F::Algorithm,
        ),
        ("no algorithm", token(json!({"alg": null})), F::HeaderUnfit),
        (
            "an algorithm that is a list",
            token(json!({"alg": ["RS256"]})),
            F::HeaderUnfit,
        ),
        (
            "ES256 with an RSA key",
            token(json!({"alg": "ES256"})),
            F::KeyMismatch,
        ),
        (
            "EdDSA with an RSA key",
            token(json!({"alg": "EdDSA"})),
            F::KeyMismatch,
        ),
        (
            "RS256 with a P-256 key",
            token(json!({"kid": "e"})),
            F::KeyMismatch,
        ),
        (
            "RS256 with a key for PS256 only",
            token(json!({"kid": "ps"})),
            F::KeyMismatch,
        ),
        (
            "PS256 in the header, RS256 in the signature",
            token(json!({"alg": "PS256"})),
            F::Signature,
        ),
        (
            "a key for encryption",
            token(json!({"kid": "enc"})),
            F::KeyUnknown,
        ),
        ("a symmetric key", token(json!({"kid": "s"})), F::KeyUnknown),
        ("no key id", token(json!({"kid": null})), F::KeyIdMissing),
        ("an empty key id", token(json!({"kid": ""})), F::KeyIdUnfit),
        (
            "a key id that is a number",
            token(json!({"kid": 7})),
            F::HeaderUnfit,
        ),
        (
            "an unknown key id",
            token(json!({"kid": "x"})),
            F::KeyUnknown,
        ),
        (
            "kid traversal",
            traversal("../../../dev/null"),
            F::KeyIdUnfit,
        ),
        (
            "kid traversal with backslashes",
            traversal("..\\..\\null"),
            F::KeyIdUnfit,
        ),
        (
            "an absolute path as kid",
            traversal("/dev/null"),
            F::KeyIdUnfit,
        ),
        (
            "a URL as kid",
            traversal("https://evil.example/key"),
            F::KeyIdUnfit,
        ),
        ("SQL in kid", traversal("x' UNION SELECT 'k"), F::KeyIdUnfit),
        ("a line break in kid", traversal("r\n"), F::KeyIdUnfit),
        ("a NUL in kid", traversal("r\0"), F::KeyIdUnfit),
        ("a long kid", traversal(&"k".repeat(257)), F::KeyIdUnfit),
        (
            "jku",
            token(json!({"jku": "https://evil.example/jwks"})),
            F::CarriesKey,
        ),
        (
            "x5u",
            token(json!({"x5u": "https://evil.example/cert"})),
            F::CarriesKey,
        ),
        (
            "jwk",
            token(json!({"jwk": TestSigner::p256().jwk("r")})),
            F::CarriesKey,
        ),
        ("x5c", token(json!({"x5c": ["MIIB"]})), F::CarriesKey),
        ("crit", token(json!({"crit": ["exp"]})), F::HeaderExtension),
        (
            "b64 false",
            token(json!({"b64": false, "crit": ["b64"]})),
            F::HeaderExtension,
        ),
        ("zip", token(json!({"zip": "DEF"})), F::HeaderExtension),
        ("enc", token(json!({"enc": "A256GCM"})), F::Encrypted),
        (
            "typ of a DPoP proof",
            token(json!({"typ": "dpop+jwt"})),
            F::Type,
        ),
        (
            "typ of a security event",
            token(json!({"typ": "secevent+jwt"})),
            F::Type,
        ),
        (
            "typ of a logout token",
            token(json!({"typ": "logout+jwt"})),
            F::LogoutToken,
        ),
        (
            "a token within a token",
            token(json!({"cty": "JWT"})),
            F::Type,
        ),
        (
            "alg twice",
            raw(r#"{"alg":"RS256","alg":"none","kid":"r"}"#),
            F::HeaderUnfit,
        ),
        (
            "alg twice by an escape",
            raw(r#"{"alg":"RS256","\u0061lg":"none","kid":"r"}"#),
            F::HeaderUnfit,
        ),
        ("a header that is a list", raw("[]"), F::HeaderUnfit),
        (
            "a header that is not JSON",
            raw("{alg:RS256}"),
            F::HeaderUnfit,
        ),
    ]
}

fn of_form(world: &World) -> Vec<Attack> {
    use TokenFault as F;
    let good = world.token(&json!({}), &json!({}));
    let parts: Vec<&str> = good.split('.').collect();
    let (header, claims, signature) = (parts[0], parts[1], parts[2]);
    let root = encode(merged(self::claims(), &json!({"sub": "root"})).to_string());
    let mut flipped = good.clone().into_bytes();
    let at = flipped.len() - 40;
    flipped[at] = if flipped[at] == b'A' { b'B' } else { b'A' };
    let other = TestSigner::p256();
    let es_header = json!({"alg": "ES256", "kid": "e"}).to_string();
    let es = |signature: &[u8]| {
        let signed = format!("{}.{claims}", encode(&es_header));
        format!("{signed}.{}", encode(signature))
    };
    let long = world.token(&json!({}), &json!({"x": "y".repeat(TOKEN_BYTES_MAX)}));
    vec![
        ("nothing", String::new(), F::Malformed),
        ("an opaque token", "ya29.a0AfH6SMC".to_owned(), F::Malformed),
        ("two parts", format!("{header}.{claims}"), F::Malformed),
        ("four parts", format!("{good}.x"), F::Malformed),
        (
            "an encrypted token",
            format!("{header}.a.b.c.d"),
            F::Encrypted,
        ),
        ("seven parts", "a.b.c.d.e.f.g".to_owned(), F::Malformed),
        ("no signature", format!("{header}.{claims}."), F::Signature),
        (
            "a long signature",
            format!("{header}.{claims}.{}", encode([0; 1025])),
            F::Signature,
        ),
        (
            "claims of another",
            format!("{header}.{root}.{signature}"),
            F::Signature,
        ),
        (
            "a flipped signature",
            String::from_utf8(flipped).unwrap(),
            F::Signature,
        ),
        ("padding", format!("{good}=="), F::Malformed),
        (
            "the alphabet of plain base64",
            format!("{header}.{claims}.{}+/", &signature[2..]),
            F::Malformed,
        ),
        (
            "a blank within",
            format!("{header}. {claims}.{signature}"),
            F::Malformed,
        ),
        ("a line break at the end", format!("{good}\n"), F::Malformed),
        ("more than 16 KiB", long, F::TooLong),
        (
            "a signature of zeros (CVE-2022-21449)",
            es(&[0; 64]),
            F::Signature,
        ),
        (
            "an ES256 signature in ASN.1",
            es(&[&[0x30, 0x44][..], &[1; 68]].concat()),
            F::Signature,
        ),
        ("an ES256 signature of 63 bytes", es(&[1; 63]), F::Signature),
        (
            "another key of the same kind",
            other.token(Algorithm::Es256, &es_header, &self::claims().to_string()),
            F::Signature,
        ),
        (
            "claims that are no JSON",
            world
                .rsa
                .token(Algorithm::Rs256, &self::header().to_string(), "iss"),
            F::ClaimsUnfit,
        ),
        (
            "iss twice",
            world.rsa.token(
                Algorithm::Rs256,
                &self::header().to_string(),
                &format!(r#"{{"iss":"https://evil.example","iss":"{ISSUER}","sub":"a"}}"#),
            ),
            F::ClaimsUnfit,
        ),
        (
            "aud twice",
            world.rsa.token(
                Algorithm::Rs256,
                &self::header().to_string(),
                &format!(r#"{{"iss":"{ISSUER}","aud":"x","aud":"gate","sub":"a"}}"#),
            ),
            F::ClaimsUnfit,
        ),
        (
            "deep claims",
            world.rsa.token(
                Algorithm::Rs256,
                &self::header().to_string(),
                &format!(
                    r#"{{"iss":"{ISSUER}","x":{}1{}}}"#,
                    "[".repeat(500),
                    "]".repeat(500)
                ),
            ),
            F::ClaimsUnfit,
        ),
    ]
}

fn of_claims(world: &World) -> Vec<Attack> {
    use TokenFault as F;
    let token = |changes: Value| world.token(&json!({}), &changes);
    let many = |count: usize| (0..count).map(|n| format!("g{n}")).collect::<Vec<_>>();
    vec![
        ("no issuer", token(json!({"iss": null})), F::IssuerMissing),
        (
            "an unknown issuer",
            token(json!({"iss": "https://evil.example"})),
            F::IssuerUnknown,
        ),
        (
            "an issuer with a slash more",
            token(json!({"iss": format!("{ISSUER}/")})),
            F::IssuerUnknown,
        ),
        (
            "an issuer in another case",
            token(json!({"iss": "https://ID.example/realms/t"})),
            F::IssuerUnknown,
        ),
        (
            "an issuer that is a list",
            token(json!({"iss": [ISSUER]})),
            F::ClaimsUnfit,
        ),
        (
            "a mixed-up issuer with the same kid",
            token(json!({"iss": OTHER})),
            F::KeyMismatch,
        ),
        (
            "no audience",
            token(json!({"aud": null})),
            F::AudienceMissing,
        ),
        (
            "an empty list of audiences",
            token(json!({"aud": []})),
            F::AudienceMissing,
        ),
        (
            "a list of audiences without this server",
            token(json!({"aud": ["account", "x"]})),
            F::Audience,
        ),
        (
            "the audience of another server",
            token(json!({"aud": "https://gate.example/mcp/other"})),
            F::Audience,
        ),
        (
            "the audience of all servers at one",
            token(json!({"aud": "https://gate.example/mcp"})),
            F::Audience,
        ),
        (
            "an audience that begins like this server",
            token(json!({"aud": "gate.evil.example"})),
            F::Audience,
        ),
        (
            "an audience that is an object",
            token(json!({"aud": {"gate": 1}})),
            F::ClaimsUnfit,
        ),
        (
            "too many audiences",
            token(json!({"aud": many(65)})),
            F::ClaimsUnfit,
        ),
        ("no end", token(json!({"exp": null})), F::ExpiryMissing),
        (
            "an end that is a text",
            token(json!({"exp": "9999999999"})),
            F::ClaimsUnfit,
        ),
        ("a negative end", token(json!({"exp": -1})), F::ClaimsUnfit),
        (
            "an end beyond all years",
            token(json!({"exp": 1e300})),
            F::ClaimsUnfit,
        ),
        ("expired", token(json!({"exp": NOW_S - 61})), F::Expired),
        (
            "valid in five minutes",
            token(json!({"nbf": NOW_S + 300})),
            F::NotYetValid,
        ),
        (
            "issued in the future",
            token(json!({"iat": NOW_S + 61})),
            F::IssuedInFuture,
        ),
        (
            "valid for two days",
            token(json!({"exp": NOW_S + 172_800})),
            F::Lifetime,
        ),
        (
            "an ID token of Keycloak",
            token(json!({"typ": "ID"})),
            F::IdToken,
        ),
        (
            "an ID token with at_hash",
            token(json!({"typ": null, "at_hash": "x"})),
            F::IdToken,
        ),
        (
            "an ID token with a nonce",
            token(json!({"typ": null, "nonce": "x"})),
            F::IdToken,
        ),
        (
            "an ID token of Cognito",
            token(json!({"token_use": "id"})),
            F::IdToken,
        ),
        (
            "a refresh token",
            token(json!({"typ": "Refresh"})),
            F::RefreshToken,
        ),
        (
            "an offline token",
            token(json!({"typ": "Offline"})),
            F::RefreshToken,
        ),
        (
            "a logout token",
            token(json!({"typ": "Logout"})),
            F::LogoutToken,
        ),
        (
            "a logout token by its events",
            token(json!({"events": {}})),
            F::LogoutToken,
        ),
        ("no subject", token(json!({"sub": null})), F::SubjectMissing),
        (
            "an empty subject",
            token(json!({"sub": "  "})),
            F::SubjectMissing,
        ),
        (
            "a subject that is a number",
            token(json!({"sub": 7})),
            F::SubjectUnfit,
        ),
        (
            "a subject with a line break",
            token(json!({"sub": "a\nb"})),
            F::SubjectUnfit,
        ),
        (
            "a subject with a turn of direction",
            token(json!({"sub": "a\u{202e}b"})),
            F::SubjectUnfit,
        ),
        (
            "a subject with blanks around",
            token(json!({"sub": " alice"})),
            F::SubjectUnfit,
        ),
        (
            "a long subject",
            token(json!({"sub": "a".repeat(256)})),
            F::SubjectUnfit,
        ),
        (
            "groups that are a text",
            token(json!({"groups": "ops"})),
            F::GroupsUnfit,
        ),
        (
            "a group that is a number",
            token(json!({"groups": [1]})),
            F::GroupsUnfit,
        ),
        (
            "too many groups",
            token(json!({"groups": many(257)})),
            F::GroupsUnfit,
        ),
        (
            "groups left out for their number",
            token(json!({"groups": null, "_claim_names": {"groups": "s"}})),
            F::GroupsElsewhere,
        ),
        (
            "scopes that are a number",
            token(json!({"scope": 1})),
            F::ScopesUnfit,
        ),
        (
            "too many scopes",
            token(json!({"scope": many(257).join(" ")})),
            F::ScopesUnfit,
        ),
        (
            "a session that is a list",
            token(json!({"sid": []})),
            F::ClaimsUnfit,
        ),
    ]
}

#[test]
fn each_attack_is_refused_with_its_own_reason() {
    let world = World::new();
    let attacks: Vec<Attack> = [of_header(&world), of_form(&world), of_claims(&world)].concat();
    assert!(attacks.len() >= 60, "{}", attacks.len());
    let mut wrong = Vec::new();
    let mut reasons = BTreeSet::new();
    for (attack, token, reason) in &attacks {
        reasons.insert(reason.label());
        // Twice: a refusal must not be cached as anything else.
        for _ in 0..2 {
            let found = world.identify(token).map(|caller| caller.subject);
            if found != Err(*reason) {
                wrong.push(format!("{attack}: {found:?}, not {reason:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(reasons.len() >= 30, "{reasons:?}");
    // Only those for another audience were verified, and kept for the path that they are for.
    assert_eq!(world.issuers.cached_count(), 4);
}

#[test]
fn an_algorithm_that_is_not_allowed_does_not_count() {
    let world = World::with(|options| {
        options.issuers[0].algorithms = vec![Algorithm::Es256];
    });
    let token = world.token(&json!({}), &json!({}));
    assert_eq!(world.identify(&token).map(drop), Err(TokenFault::Algorithm));
}

#[test]
fn a_token_counts_at_the_path_of_its_audience_only() {
    let world = World::new();
    let token = world.token(
        &json!({}),
        &json!({"aud": "https://gate.example/mcp/files"}),
    );
    for (path, counts) in [
        ("/mcp/files", true),
        ("/mcp/files/", true),
        ("/mcp/other", false),
        ("/mcp", false),
        ("/v1/models", false),
        ("/", false),
    ] {
        let found = world.identify_at(&token, path, NOW_MS);
        assert_eq!(found.is_ok(), counts, "{path}");
    }
    let models = world.token(
        &json!({}),
        &json!({"aud": ["account", "https://gate.example/v1"]}),
    );
    assert!(
        world
            .identify_at(&models, "/v1/chat/completions", NOW_MS)
            .is_ok()
    );
    assert!(world.identify_at(&models, "/mcp/files", NOW_MS).is_err());
}

#[test]
fn a_cached_token_ends_with_its_time_its_key_and_its_session() {
    let world = World::new();
    let token = world.token(&json!({}), &json!({}));
    assert!(world.identify(&token).is_ok());
    assert_eq!(world.issuers.cached_count(), 1);
    let at = |now_ms| world.identify_at(&token, "/mcp/files", now_ms).map(drop);
    assert_eq!(at(NOW_MS + 359_999), Ok(()));
    assert_eq!(at(NOW_MS + 360_000), Err(TokenFault::Expired));
    // A key that the issuer no longer publishes.
    let keys = json!({"keys": [world.p256.jwk("e")]}).to_string();
    world.issuers.replace_keys(ISSUER, keys.as_bytes(), NOW_MS);
    assert_eq!(at(NOW_MS), Err(TokenFault::KeyUnknown));
    let keys = json!({"keys": [world.rsa.jwk("r")]}).to_string();
    world.issuers.replace_keys(ISSUER, keys.as_bytes(), NOW_MS);
    assert_eq!(at(NOW_MS), Ok(()));
    // Another session of the same issuer, and the same session id of another issuer, go on.
    world.issuers.end_session(OTHER, "s-1");
    world.issuers.end_session(ISSUER, "s-2");
    assert_eq!(at(NOW_MS), Ok(()));
    assert!(world.issuers.take_revoked(NOW_MS).is_empty());
    world.issuers.end_session(ISSUER, "s-1");
    assert_eq!(at(NOW_MS), Err(TokenFault::SessionEnded));
    let gone = world.issuers.take_revoked(NOW_MS);
    assert_eq!(gone, [format!("{ISSUER}#alice").into()]);
    assert!(world.issuers.take_revoked(NOW_MS).is_empty());
}

#[tokio::test]
async fn only_a_logout_token_for_this_client_ends_a_session() {
    let world = World::new();
    let token = world.token(&json!({}), &json!({}));
    let event = json!({"http://schemas.openid.net/event/backchannel-logout": {}});
    let claims = json!({
        "iss": ISSUER, "aud": "cli", "iat": NOW_S, "exp": NOW_S + 120, "sid": "s-1", "events": event,
    });
    let logout = |header: Value, changes: Value| {
        world.sign(
            &merged(self::header(), &header),
            &merged(claims.clone(), &changes),
        )
    };
    let plain = json!({"typ": "logout+jwt"});
    for (token, fault) in [
        (
            logout(plain.clone(), json!({"aud": "other"})),
            TokenFault::LogoutUnfit,
        ),
        (
            logout(plain.clone(), json!({"aud": null})),
            TokenFault::AudienceMissing,
        ),
        (
            logout(plain.clone(), json!({"events": null})),
            TokenFault::LogoutUnfit,
        ),
        (
            logout(plain.clone(), json!({"events": {"x": {}}})),
            TokenFault::LogoutUnfit,
        ),
        (
            logout(plain.clone(), json!({"nonce": "n"})),
            TokenFault::LogoutUnfit,
        ),
        (
            logout(plain.clone(), json!({"sid": null, "sub": "alice"})),
            TokenFault::LogoutUnfit,
        ),
        (
            logout(plain.clone(), json!({"iat": null})),
            TokenFault::LogoutUnfit,
        ),
        (
            logout(plain.clone(), json!({"iat": NOW_S - 400})),
            TokenFault::LogoutUnfit,
        ),
        (
            logout(plain.clone(), json!({"iat": NOW_S + 400})),
            TokenFault::LogoutUnfit,
        ),
        (
            logout(plain.clone(), json!({"exp": NOW_S - 100})),
            TokenFault::LogoutUnfit,
        ),
        (
            logout(plain.clone(), json!({"iss": "https://evil.example"})),
            TokenFault::IssuerUnknown,
        ),
        (
            logout(json!({"typ": "at+jwt"}), json!({})),
            TokenFault::Type,
        ),
        (token.clone(), TokenFault::LogoutUnfit),
        (
            format!("{}x", logout(plain.clone(), json!({}))),
            TokenFault::Malformed,
        ),
    ] {
        let ended = world.issuers.end_session_by(&token, NOW_MS).await;
        assert_eq!(ended, Err(fault), "{token}");
        assert!(world.identify(&world.token(&json!({}), &json!({}))).is_ok());
    }
    for typ in ["logout+jwt", "JWT"] {
        let good = logout(json!({"typ": typ}), json!({}));
        assert_eq!(world.issuers.end_session_by(&good, NOW_MS).await, Ok(()));
    }
    assert_eq!(
        world.identify(&token).map(drop),
        Err(TokenFault::SessionEnded)
    );
}

#[test]
fn keys_count_on_without_the_issuer_for_the_stated_time() {
    let world = World::with(|options| options.lifetime_ms_max = 10 * 86_400_000);
    let token = world.token(&json!({}), &json!({"exp": NOW_S + 9 * 86_400}));
    let at = |now_ms| world.identify_at(&token, "/mcp/files", now_ms).map(drop);
    assert_eq!(at(NOW_MS), Ok(()));
    assert_eq!(at(NOW_MS + 86_400_000), Ok(()));
    assert_eq!(at(NOW_MS + 86_400_001), Err(TokenFault::IssuerUnreachable));
    // Before the first fetch.
    let issuers = Issuers::new(IdentityOptions {
        issuers: vec![issuer(ISSUER)],
        ..IdentityOptions::default()
    });
    let found = issuers.identify(&Credential::bearer(&token), NOW_MS);
    let unreachable = IdentityFault::Token(TokenFault::IssuerUnreachable);
    assert_eq!(found.map(drop), Err(unreachable));
}

#[test]
fn the_cache_is_bounded_and_keeps_the_younger_half() {
    use crate::cache::{CachedToken, TOKENS_MAX, TokenCache};
    use crate::claims::VerifiedToken;
    let cache = TokenCache::default();
    let cached = std::sync::Arc::new(CachedToken {
        token: VerifiedToken {
            caller: gate::Caller::local("a"),
            audiences: None,
            not_before_ms: 0,
            expires_ms: 0,
        },
        issuer: 0,
        generation: 1,
    });
    let digest = |n: usize| TokenCache::digest(&n.to_string());
    for n in 0..3 * TOKENS_MAX {
        cache.insert(digest(n), std::sync::Arc::clone(&cached));
        assert!(cache.len() <= TOKENS_MAX);
    }
    assert!(cache.get(&digest(0)).is_none());
    let young = 3 * TOKENS_MAX - TOKENS_MAX / 2..3 * TOKENS_MAX;
    assert!(young.clone().all(|n| cache.get(&digest(n)).is_some()));
    assert_eq!(cache.drop_where(|_| true), ["a".into()]);
    assert_eq!(cache.len(), 0);
}

#[test]
fn published_keys_are_bounded_and_unusable_ones_left_out() {
    use crate::jwks::{JwksFault, read};
    let key = TestSigner::p256();
    let many = |count: usize| {
        let keys: Vec<Value> = (0..count).map(|n| key.jwk(&format!("k{n}"))).collect();
        json!({ "keys": keys }).to_string()
    };
    assert_eq!(read(many(64).as_bytes()).unwrap().len(), 64);
    assert_eq!(read(many(65).as_bytes()), Err(JwksFault::TooMany));
    assert_eq!(read(many(10_000).as_bytes()), Err(JwksFault::TooMany));
    for text in [
        "",
        "[]",
        "{}",
        r#"{"keys":{}}"#,
        r#"{"keys":[],"keys":[]}"#,
        "{\"keys\":",
    ] {
        assert_eq!(read(text.as_bytes()), Err(JwksFault::Malformed), "{text}");
    }
    let changed = |changes: Value| {
        let keys = json!({"keys": [merged(key.jwk("k"), &changes)]}).to_string();
        read(keys.as_bytes())
    };
    assert!(changed(json!({"use": "sig", "key_ops": ["verify"], "alg": "ES256"})).is_ok());
    for changes in [
        json!({"use": "enc"}),
        json!({"key_ops": ["sign"]}),
        json!({"d": "AAAA"}),
        json!({"kid": null}),
        json!({"kid": 7}),
        json!({"alg": "HS256"}),
        json!({"alg": "RS256"}),
        json!({"crv": "P-521"}),
        json!({"x": "AAAA"}),
        json!({"y": null}),
        json!({"kty": "oct", "k": "AAAA"}),
        json!({"kty": "RSA", "n": "AQAB", "e": "AQAB"}),
    ] {
        assert_eq!(
            changed(changes.clone()),
            Err(JwksFault::NoneUsable),
            "{changes}"
        );
    }
}

/// The cases of `../shared` that are about tokens alone; the others are tests of the binary.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the environment decides whether a test may skip"
)]
fn the_shared_cases_of_tokens_are_among_the_attacks() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let cases = "shared/cases/agents/oauth-tokens.jsonl";
    // From a work tree that lies one folder deeper too.
    let places = [manifest.join("../../.."), manifest.join("../../../..")];
    let texts = places
        .iter()
        .map(|place| std::fs::read_to_string(place.join(cases)));
    let Some(text) = texts.flatten().next() else {
        assert!(std::env::var_os("CI").is_none(), "../{cases} is missing");
        println!("skipped: the_shared_cases_of_tokens_are_among_the_attacks needs ../shared");
        return;
    };
    let world = World::new();
    let attacks: Vec<Attack> = [of_header(&world), of_form(&world), of_claims(&world)].concat();
    let ours = [
        ("alg none", "alg none"),
        (
            "HS256 signed with the RSA public key",
            "HS256 with the public key as secret",
        ),
        (
            "aud is a list without us",
            "a list of audiences without this server",
        ),
        (
            "aud equals another server of ours",
            "the audience of another server",
        ),
        ("nbf 5 min ahead", "valid in five minutes"),
        ("kid unknown", "an unknown key id"),
        ("ID token presented", "an ID token of Keycloak"),
        ("refresh token presented", "an offline token"),
        ("token in ?access_token= query", ""),
        ("two Authorization headers", ""),
        ("issuer changed in discovery document", ""),
        ("JWKS with 10,000 keys", ""),
    ];
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let case: Value = serde_json::from_str(line).unwrap();
        let name = case["case"].as_str().unwrap();
        let found = ours.iter().find(|(begins, _)| name.starts_with(begins));
        let (_, own) = found.unwrap_or_else(|| panic!("no test of: {name}"));
        assert!(
            own.is_empty() || attacks.iter().any(|(attack, ..)| attack == own),
            "{own}"
        );
    }
}
