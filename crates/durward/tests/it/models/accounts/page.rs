//! The page for accounts, in a real browser.

use serde_json::{Value, json};

use super::{ask, open_place, send};
use crate::support::chromium::{self, Browser};
use crate::support::guarded::eventually;
use crate::support::serving::Served;

/// Fills in a form and sends it, as a person does.
fn submit(browser: &mut Browser, form: &str, fields: &Value) {
    let script = format!(
        "(() => {{ const form = document.getElementById({form:?}); const given = {fields}; for (const name in given) form.elements[name].value = given[name]; form.requestSubmit(); }})()"
    );
    browser.value(&script);
}

/// Waits until the page says this.
#[track_caller]
fn says(browser: &mut Browser, expect: &str) {
    eventually(expect, || {
        let told = browser.value("document.getElementById('told').textContent");
        told.as_str().is_some_and(|told| told.contains(expect))
    });
}

fn text(browser: &mut Browser, id: &str) -> String {
    let told = browser.value(&format!("document.getElementById({id:?}).textContent"));
    told.as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_person_registers_makes_a_token_and_keeps_a_key_of_a_provider() {
    let Some(program) = chromium::installed() else {
        return;
    };
    let (place, _) = open_place("");
    let folder = place.path("browser");
    std::fs::create_dir(&folder).unwrap();
    let served = Served::start_ruled(place);
    let mut browser = Browser::start(&program, &folder);
    browser.open(&format!("http://{}/account", served.address));
    submit(
        &mut browser,
        "register",
        &json!({ "username": "no such name!" }),
    );
    says(&mut browser, "name");
    submit(&mut browser, "register", &json!({ "username": "ada" }));
    says(&mut browser, "You are registered.");
    assert_eq!(text(&mut browser, "who"), "ada");
    let first = text(&mut browser, "secret");
    assert_eq!(ask(&served, &first).status, 200);
    submit(
        &mut browser,
        "token",
        &json!({ "name": "laptop", "days": "7" }),
    );
    says(&mut browser, "The token is made.");
    let second = text(&mut browser, "secret");
    assert!(second != first && ask(&served, &second).status == 200);
    assert!(text(&mut browser, "tokens").contains("laptop"));
    submit(
        &mut browser,
        "key",
        &json!({ "provider": "a", "key": "sk-not-shown-again" }),
    );
    says(&mut browser, "The key is saved.");
    let page = browser.value("document.documentElement.outerHTML");
    assert!(!page.as_str().unwrap().contains("sk-not-shown-again"));
    let kept = send(&served, &second, "GET", "/v1/user/keys", &Value::Null);
    assert_eq!(kept.json()["providers"], json!(["a"]));
    browser.value("[...document.querySelectorAll('#tokens tr')].find((row) => row.textContent.includes('laptop')).querySelector('button').click()");
    says(&mut browser, "The token is revoked.");
    assert_eq!(ask(&served, &second).status, 401);
    browser.value("document.getElementById('leave').click()");
    says(&mut browser, "Closed.");
    submit(&mut browser, "enter", &json!({ "token": first }));
    eventually("the account is open again", || {
        text(&mut browser, "who") == "ada"
    });
    let blocked: Vec<&Value> = browser
        .events
        .iter()
        .filter(|event| event.to_string().contains("Content Security Policy"))
        .collect();
    assert!(blocked.is_empty(), "{blocked:?}");
}

#[test]
fn the_page_may_run_its_own_script_alone_and_is_there_without_a_credential() {
    let (place, _) = open_place("");
    let served = Served::start_ruled(place);
    let page = served.send("GET", "/account", &[], "");
    assert_eq!(page.status, 200, "{page:?}");
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    let rules = page.header("content-security-policy").unwrap();
    assert!(
        rules.starts_with("default-src 'none'; script-src 'sha256-"),
        "{rules}"
    );
    assert!(
        rules.contains("frame-ancestors 'none'") && !rules.contains("unsafe"),
        "{rules}"
    );
    assert_eq!(served.send("POST", "/account", &[], "").status, 405);
    assert_eq!(served.send("GET", "/account/x", &[], "").status, 404);
    assert_eq!(served.send("GET", "/v1/user/me", &[], "").status, 401);
}
