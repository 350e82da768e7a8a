//! The kinds of resources, as clients get them.

use toolkit::server::Template;

use super::JSON;

/// The kinds of resources.
pub const TEMPLATES: &[Template] = &[
    Template {
        uri: "sim://results/{resultsId}{?outputs*,page,limit}",
        name: "result",
        title: "Result of a run",
        about: "The curves of a run, as get_results gives them, or the figures and chunks of a population, as \
            get_population_results does. Long results come in pages; next is the URI of the next one.",
        media_type: JSON,
    },
    Template {
        uri: "sim://results/{resultsId}/pk{?outputPath}",
        name: "parameters",
        title: "Pharmacokinetic parameters of a run",
        about: "Cmax, tmax and AUC of each output, as calculate_pk_parameters gives them.",
        media_type: JSON,
    },
    Template {
        uri: "sim://results/{resultsId}/plot{?outputs*}",
        name: "plot",
        title: "Curves of a run as a picture",
        about: "The picture that plot_results draws; outputs chooses curves by pattern.",
        media_type: "image/png",
    },
    Template {
        uri: "sim://results/{resultsId}/chunks/{chunkId}{?subjects*,outputs*}",
        name: "chunk",
        title: "Curves of some individuals",
        about: "A chunk of a population, as get_population_chunk gives it; subjects and outputs choose some of its curves.",
        media_type: JSON,
    },
];
