"""Acts at Keycloak as a person and an administrator would, with Python's own library.

keycloak.py password ISSUER USER SCOPE           prints the answer of the token endpoint
keycloak.py device URL USER                      signs USER in at the page of a device code, and consents
keycloak.py rotate BASE REALM                    adds a signing key of a higher priority
keycloak.py end-sessions BASE REALM USER         ends all sessions of a user
keycloak.py end-session BASE REALM TOKEN         ends the session of an access token
keycloak.py report-logout BASE REALM URL         has the end of sessions reported there
"""

import base64
import html
import http.cookiejar
import json
import re
import sys
import urllib.error
import urllib.parse
import urllib.request

PASSWORD = "pw"


def post(url, fields, token=None):
    request = urllib.request.Request(url, urllib.parse.urlencode(fields).encode())
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


def password(issuer, user, scope):
    url = f"{issuer}/protocol/openid-connect/token"
    fields = {
        "grant_type": "password",
        "client_id": "durward",
        "username": user,
        "password": PASSWORD,
        "scope": scope,
    }
    print(json.dumps(post(url, fields)))


class SecureOverHttp(http.cookiejar.DefaultCookiePolicy):
    """A browser takes loopback for secure; this policy does too."""

    def return_ok_secure(self, cookie, request):
        return True


def forms(page):
    for found in re.finditer(r"<form\b.*?</form>", page, re.S):
        form = found.group(0)
        action = html.unescape(re.search(r'action="([^"]*)"', form).group(1))
        fields = {}
        for tag in re.findall(r"<input\b[^>]*>", form):
            name = re.search(r'name="([^"]*)"', tag)
            value = re.search(r'value="([^"]*)"', tag)
            kind = re.search(r'type="([^"]*)"', tag)
            if name and not (kind and kind.group(1) == "submit"):
                fields[html.unescape(name.group(1))] = html.unescape(value.group(1)) if value else ""
        yield action, fields


def sign_in(url, user):
    """Opens a page, signs in and consents; returns the text of the last page."""
    jar = http.cookiejar.CookieJar(SecureOverHttp())
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    answer = browser.open(url, timeout=20)
    for _ in range(6):
        page = answer.read().decode()
        found = list(forms(page))
        if not found:
            break
        action, fields = found[0]
        action = urllib.parse.urljoin(answer.geturl(), action)
        if "username" in fields or "password" in fields:
            fields.update(username=user, password=PASSWORD)
        elif "accept" in page:
            fields["accept"] = "Yes"
        answer = browser.open(action, urllib.parse.urlencode(fields).encode(), timeout=20)
    return re.sub(r"<[^>]+>|\s+", " ", page)


def device(url, user):
    print(sign_in(url, user)[-300:])


def admin(base):
    url = f"{base}/realms/master/protocol/openid-connect/token"
    fields = {
        "grant_type": "password",
        "client_id": "admin-cli",
        "username": "admin",
        "password": "admin",
    }
    return post(url, fields)["access_token"]


def manage(base, method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{base}/admin/realms/{path}", data, method=method)
    request.add_header("Authorization", f"Bearer {admin(base)}")
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=20) as answer:
        text = answer.read()
        return json.loads(text) if text else None


def rotate(base, realm):
    parent = manage(base, "GET", realm)["id"]
    body = {
        "name": "newer",
        "parentId": parent,
        "providerId": "rsa-generated",
        "providerType": "org.keycloak.keys.KeyProvider",
        "config": {"priority": ["500"], "algorithm": ["RS256"], "keySize": ["2048"]},
    }
    manage(base, "POST", f"{realm}/components", body)


def end_sessions(base, realm, user):
    found = manage(base, "GET", f"{realm}/users?username={user}&exact=true")
    manage(base, "POST", f"{realm}/users/{found[0]['id']}/logout")


def end_session(base, realm, token):
    claims = token.split(".")[1]
    sid = json.loads(base64.urlsafe_b64decode(claims + "=="))["sid"]
    manage(base, "DELETE", f"{realm}/sessions/{sid}")


def report_logout(base, realm, url):
    client = manage(base, "GET", f"{realm}/clients?clientId=durward")[0]
    client["attributes"].update(
        {"backchannel.logout.url": url, "backchannel.logout.session.required": "true"}
    )
    manage(base, "PUT", f"{realm}/clients/{client['id']}", client)


COMMANDS = {
    "password": password,
    "device": device,
    "rotate": rotate,
    "end-session": end_session,
    "end-sessions": end_sessions,
    "report-logout": report_logout,
}
if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
