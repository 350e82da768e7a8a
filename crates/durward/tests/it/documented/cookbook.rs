//! Each recipe of the cookbook: a policy without warnings, and cases that come out as the page says.

use std::fs;

use crate::support::components::repository;
use crate::support::world::World;

/// The fenced `json` blocks of a text.
fn blocks(text: &str) -> Vec<&str> {
    let parts = text.split("```json\n").skip(1);
    parts
        .map(|part| part.split("```").next().unwrap())
        .collect()
}

#[test]
fn every_recipe_of_the_cookbook_does_what_it_says() {
    let page = fs::read_to_string(repository().join("docs/cookbook.md")).unwrap();
    let world = World::new(None);
    let recipes: Vec<&str> = page.split("\n## ").skip(1).collect();
    assert_eq!(recipes.len(), 11);
    for recipe in recipes {
        let title = recipe.lines().next().unwrap();
        let blocks = blocks(recipe);
        let [policy, cases] = blocks.as_slice() else {
            panic!(
                "{title}: a policy and its cases, not {} blocks",
                blocks.len()
            );
        };
        fs::write(world.tmp.join("policy.json"), policy).unwrap();
        fs::write(world.tmp.join("cases.json"), cases).unwrap();
        for args in [
            &["policy", "check", "--strict", "policy.json"][..],
            &["policy", "test", "cases.json", "--policy", "policy.json"],
        ] {
            let done = world.durward(args);
            let said = String::from_utf8_lossy(&done.stdout).into_owned();
            assert!(done.status.success(), "{title}: {args:?}: {said}{done:?}");
        }
        // A recipe that is never refused shows nothing.
        for verdict in ["\"expect\": \"allow\"", "\"expect\": \""] {
            assert!(cases.contains(verdict), "{title}");
        }
    }
}
