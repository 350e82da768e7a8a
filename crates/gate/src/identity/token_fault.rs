//! Reasons why an access token is not accepted.

use crate::closed_set;

closed_set! {
    /// Why an access token of an issuer is not accepted. Each reason states what to change.
    pub enum TokenFault {
        Missing "token_missing": "sign in: send an access token of an issuer of this server as Authorization: Bearer TOKEN; durward login gets one, and clients of MCP find the issuers by resource_metadata";
        TooLong "token_too_long": "the access token has more than 16 KiB; have the issuer put fewer claims into it";
        Malformed "token_malformed": "the access token is not a signed JWT; sign in and send the access token as Authorization: Bearer TOKEN";
        Encrypted "token_encrypted": "the access token is encrypted; have the issuer sign it only";
        HeaderUnfit "token_header_unfit": "the header of the access token is not a JSON object with each member once";
        HeaderExtension "token_header_extension": "the header of the access token demands an extension (crit, b64, zip) that is not supported";
        CarriesKey "token_carries_key": "the header of the access token brings a key or its address (jku, jwk, x5c, x5u); only keys that the issuer publishes count";
        Unsigned "token_unsigned": "the access token is not signed (alg none)";
        Symmetric "token_symmetric": "the access token is signed with a shared secret (HS256 and the like); have the issuer sign with RS256, PS256, ES256 or EdDSA";
        Algorithm "token_algorithm": "the signature algorithm of the access token is not among those that identity allows for its issuer";
        Type "token_type": "the type of the access token is neither JWT nor at+jwt";
        KeyIdMissing "token_key_id_missing": "the header of the access token names no key (kid)";
        KeyIdUnfit "token_key_id_unfit": "the key id (kid) of the access token is too long or has characters of a path";
        KeyUnknown "token_key_unknown": "the issuer does not publish the key that the access token names; sign in again";
        KeyMismatch "token_key_mismatch": "the key that the access token names is not for its algorithm";
        Signature "token_signature": "the signature of the access token is wrong";
        ClaimsUnfit "token_claims_unfit": "the claims of the access token are not a JSON object with each member once and values of the expected types";
        IssuerMissing "token_issuer_missing": "the access token names no issuer (iss)";
        IssuerUnknown "token_issuer_unknown": "the issuer of the access token is not configured here; sign in at an issuer that this server names";
        AudienceMissing "token_audience_missing": "the access token names no audience (aud); have the issuer add this server's";
        Audience "token_audience": "the access token is for another audience; sign in with the resource of this server, or have the issuer add this server's audience";
        ExpiryMissing "token_expiry_missing": "the access token has no end (exp)";
        Expired "token_expired": "the access token has expired; refresh it or sign in again";
        NotYetValid "token_not_yet_valid": "the access token is not valid yet (nbf); compare the clocks of issuer and server";
        IssuedInFuture "token_issued_in_future": "the access token was issued in the future (iat); compare the clocks of issuer and server";
        Lifetime "token_lifetime": "the access token is valid for longer than identity.lifetime_max; have the issuer shorten it";
        IdToken "token_is_id_token": "this is an ID token; send the access token";
        RefreshToken "token_is_refresh_token": "this is a refresh token; send the access token";
        LogoutToken "token_is_logout_token": "this is a logout token; send the access token";
        SubjectMissing "token_subject_missing": "the access token does not have the claim that names the caller";
        SubjectUnfit "token_subject_unfit": "the claim that names the caller is too long or has control characters";
        GroupsUnfit "token_groups_unfit": "the groups of the access token are not a list of names, or there are too many";
        GroupsElsewhere "token_groups_elsewhere": "the access token leaves out the groups because there are too many (overage); have the issuer send assigned groups or roles only";
        ScopesUnfit "token_scopes_unfit": "the scopes of the access token are not a list of words, or there are too many";
        SessionEnded "token_session_ended": "the session of the access token has ended at the issuer; sign in again";
        LogoutUnfit "logout_token_unfit": "the logout token is for another client, is old, or names no session (sid); have the issuer require the session in back-channel logout";
        InQuery "token_in_query": "an access token in the URL is not accepted; send it as Authorization: Bearer TOKEN";
        IssuerUnreachable "issuer_unreachable": "the keys of the issuer cannot be fetched; try again, or have the operator check that this server reaches the issuer";
    }
}

impl TokenFault {
    /// Returns whether the same token may be accepted later without a change.
    #[must_use]
    pub const fn is_passing(self) -> bool {
        matches!(self, Self::IssuerUnreachable)
    }
}
