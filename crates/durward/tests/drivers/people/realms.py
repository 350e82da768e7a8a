"""Writes the realms of the tests as Keycloak imports them: realms.py FOLDER AUDIENCE."""

import json
import pathlib
import sys

folder, audience = pathlib.Path(sys.argv[1]), sys.argv[2]

GROUPS = {
    "name": "groups",
    "protocol": "openid-connect",
    "protocolMapper": "oidc-group-membership-mapper",
    "config": {
        "claim.name": "groups",
        "full.path": "false",
        "access.token.claim": "true",
        "id.token.claim": "true",
    },
}
AUDIENCE = {
    "name": "audience",
    "protocol": "openid-connect",
    "protocolMapper": "oidc-audience-mapper",
    "config": {"included.custom.audience": audience, "access.token.claim": "true"},
}


SUBJECT = {
    "name": "sub",
    "protocol": "openid-connect",
    "protocolMapper": "oidc-sub-mapper",
    "config": {"access.token.claim": "true"},
}


def scope(name, mappers, shown="true"):
    return {
        "name": name,
        "protocol": "openid-connect",
        "attributes": {"include.in.token.scope": shown, "display.on.consent.screen": "false"},
        "protocolMappers": mappers,
    }


def user(name, groups):
    return {
        "username": name,
        "enabled": True,
        "email": f"{name}@example.test",
        "emailVerified": True,
        "firstName": name,
        "lastName": "Test",
        "groups": [f"/{group}" for group in groups],
        # FastMCP asks for a refresh token that outlives the session.
        "realmRoles": ["offline_access"],
        "credentials": [{"type": "password", "value": "pw", "temporary": False}],
    }


def realm(name, lifespan):
    return {
        "realm": name,
        "enabled": True,
        "sslRequired": "none",
        "accessTokenLifespan": lifespan,
        "groups": [{"name": "ops"}, {"name": "dev"}],
        "clientScopes": [
            scope("basic", [SUBJECT], "false"),
            scope("mcp:read", [AUDIENCE, GROUPS]),
            scope("mcp:write", []),
        ],
        "users": [user("alice", ["ops"]), user("bob", ["dev"])],
        "clients": [
            {
                "clientId": "durward",
                "publicClient": True,
                "directAccessGrantsEnabled": True,
                "standardFlowEnabled": True,
                "redirectUris": ["http://127.0.0.1/*", "http://localhost/*"],
                "attributes": {
                    "oauth2.device.authorization.grant.enabled": "true",
                    "pkce.code.challenge.method": "S256",
                },
                "defaultClientScopes": ["basic"],
                "optionalClientScopes": ["mcp:read", "mcp:write", "offline_access"],
            }
        ],
    }


# The partner's tokens are refreshed after a few seconds.
for name, lifespan in (("company", 300), ("partner", 10)):
    (folder / f"{name}-realm.json").write_text(json.dumps(realm(name, lifespan)))
