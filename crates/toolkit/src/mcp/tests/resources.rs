//! Resources of a server as each era reads them.

use super::*;
use crate::server::{
    Body, Contents, Resource, ResourceAnswer, ResourceAsked, ResourceCall, ResourceFault, Template,
};

const TEMPLATE: Template = Template {
    uri: "shelf://{name}",
    name: "book",
    title: "A book",
    about: "What is on the shelf.",
    media_type: "text/plain",
};

/// A server with one book for each caller, named like it.
struct Shelf;

impl ToolServer for Shelf {
    fn identity(&self) -> Identity {
        Identity {
            name: "shelf",
            title: "Shelf",
            version: "1",
            instructions: "",
        }
    }

    fn tools(&self) -> &[ToolDef] {
        &[]
    }

    async fn call(&self, _: ToolCall, _: ReplySink) -> Outcome {
        Outcome::Cancelled
    }

    fn templates(&self) -> &[Template] {
        &[TEMPLATE]
    }

    async fn resources(&self, call: ResourceCall) -> Result<ResourceAnswer, ResourceFault> {
        let own = format!("shelf://{}", call.caller());
        let text = |text: String| {
            Ok(ResourceAnswer::Contents(Contents {
                media_type: "text/plain",
                body: Body::Text(text),
            }))
        };
        match call.asked() {
            ResourceAsked::List { cursor: None } => Ok(ResourceAnswer::Page {
                resources: vec![Resource {
                    uri: own,
                    name: "own".into(),
                    title: "Own".into(),
                    media_type: "text/plain",
                }],
                next: Some("more".into()),
            }),
            ResourceAsked::List { cursor: Some(_) } => {
                Err(ResourceFault::Unfit("another cursor".into()))
            }
            ResourceAsked::Read { uri } if *uri == own => text("words".into()),
            ResourceAsked::Read { uri } if uri == "shelf://big" => {
                text("x".repeat(RESULT_BYTES_MAX))
            }
            ResourceAsked::Read { uri } if uri == "shelf://burnt" => {
                Err(ResourceFault::Failed(Failure::new("burnt", "it has burnt")))
            }
            ResourceAsked::Read { uri } => Err(ResourceFault::Missing(format!("no book {uri}"))),
        }
    }
}

fn read(uri: &str) -> String {
    format!(r#""uri":"{uri}""#)
}

#[tokio::test]
async fn both_eras_list_and_read_what_belongs_to_the_caller() {
    let trial = Trial::new(Arc::new(Shelf), None).unwrap();
    let session = opened(&trial).await;
    let listed = reply(&trial, &session, &legacy("resources/list", "")).await;
    let book =
        json!({"uri": "shelf://ada", "name": "own", "title": "Own", "mimeType": "text/plain"});
    assert_eq!(
        listed["result"],
        json!({"resources": [book], "nextCursor": "more"})
    );
    let told = reply(
        &trial,
        &session,
        &legacy("resources/read", &read("shelf://ada")),
    )
    .await;
    let contents = json!([{"uri": "shelf://ada", "mimeType": "text/plain", "text": "words"}]);
    assert_eq!(told["result"], json!({"contents": contents}));
    let templates = reply(&trial, &session, &legacy("resources/templates/list", "")).await;
    let template = &templates["result"]["resourceTemplates"][0];
    assert_eq!(
        (&template["uriTemplate"], &template["title"]),
        (&json!("shelf://{name}"), &json!("A book"))
    );

    let bob = trial.session("bob");
    let listed = reply(&trial, &bob, &modern("resources/list", "")).await;
    let result = &listed["result"];
    assert_eq!(result["resources"][0]["uri"], "shelf://bob");
    assert_eq!(
        (
            &result["resultType"],
            &result["cacheScope"],
            &result["ttlMs"]
        ),
        (&json!("complete"), &json!("private"), &json!(0))
    );
    let discovered = reply(&trial, &bob, &modern("server/discover", "")).await;
    let can = &discovered["result"]["capabilities"]["resources"];
    assert_eq!(*can, json!({"listChanged": false}));
}

#[tokio::test]
async fn what_cannot_be_read_has_the_code_of_its_era() {
    let trial = Trial::new(Arc::new(Shelf), None).unwrap();
    let session = opened(&trial).await;
    let comma = |params: &str| match params {
        "" => String::new(),
        params => format!("{params},"),
    };
    for (method, params, old, new, said) in [
        (
            "resources/read",
            read("shelf://none"),
            -32002,
            -32602,
            "no book shelf://none",
        ),
        (
            "resources/read",
            read("shelf://burnt"),
            -32603,
            -32603,
            "it has burnt",
        ),
        (
            "resources/read",
            read("shelf://big"),
            -32602,
            -32602,
            "at most 4194304 are sent",
        ),
        (
            "resources/read",
            String::new(),
            -32602,
            -32602,
            "params.uri is not a string",
        ),
        (
            "resources/list",
            r#""cursor":"x""#.into(),
            -32602,
            -32602,
            "another cursor",
        ),
        (
            "resources/list",
            r#""cursor":1"#.into(),
            -32602,
            -32602,
            "params.cursor is not a string",
        ),
        (
            "resources/templates/list",
            r#""cursor":"x""#.into(),
            -32602,
            -32602,
            "not issued here",
        ),
    ] {
        let told = reply(&trial, &session, &legacy(method, &params)).await;
        assert_eq!(told["error"]["code"], old, "{method} {params}: {told}");
        assert!(
            told["error"]["message"].as_str().unwrap().contains(said),
            "{told}"
        );
        let told = reply(&trial, &session, &modern(method, &comma(&params))).await;
        assert_eq!(told["error"]["code"], new, "{method} {params}: {told}");
    }
    let unopened = trial.session("ada");
    let told = reply(&trial, &unopened, &legacy("resources/list", "")).await;
    assert_eq!(told["error"]["code"], -32600, "{told}");
}
