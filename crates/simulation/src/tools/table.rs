//! One row for each tool: names, words, shapes, and the function that does it.

use gate::facts::Operation;

use super::{
    Tool, bundle, fit, inputs, jobs, models, parameters, plot, results, review, sensitivity,
    signoff, snapshots,
};
use crate::fault::{Fault, Kind};

/// A tool that only looks.
const LOOKS: Tool = Tool {
    name: "",
    title: "",
    about: "",
    critical: false,
    of_bridge: true,
    operator: false,
    operation: Operation::Read,
    side_effects: &[],
    input: inputs::nothing,
    output: "o",
    shown: None,
    run: |_, _| Err(Fault::new(Kind::NotImplemented, "this tool does nothing")),
};

/// A tool that changes something, for operators.
const CHANGES: Tool = Tool {
    critical: true,
    operator: true,
    operation: Operation::Write,
    ..LOOKS
};

/// Every tool, in the order in which they are listed.
pub const TOOLS: &[Tool] = &[
    Tool {
        name: "load_simulation",
        title: "Load a simulation",
        about: "Loads a model file (.pkml or SimModel .xml) from the allowed folders. The id is the file's name without its extension unless another one is given.",
        side_effects: &["fs_read"],
        input: inputs::load,
        output: "{tool s, contractVersion s, simulationId s, backend s?, metadata {name s?, modelVersion s?, createdBy s?, createdAt s?, backend s?}, capabilities o, profile o, validation o?, qualificationState o?, warnings [s]}",
        run: models::load,
        ..CHANGES
    },
    Tool {
        name: "list_parameters",
        title: "List parameters",
        about: "Lists the paths of a simulation's parameters, sorted. The pattern has * for any characters and ? for one. At most 500 are listed at a time; where there are more, total says how many, and page asks for the next ones.",
        input: inputs::list_parameters,
        output: "{parameters [s], ~page i, ~limit i, ~total i}",
        run: parameters::list,
        ..LOOKS
    },
    Tool {
        name: "get_parameter_value",
        title: "Read a parameter",
        about: "Gives the value of a parameter in its base unit. An unknown path is answered with the nearest ones.",
        input: inputs::get_parameter,
        output: PARAMETER,
        run: parameters::get,
        ..LOOKS
    },
    Tool {
        name: "set_parameter_value",
        title: "Set a parameter",
        about: "Sets a parameter of a loaded simulation; what depends on it is computed again. unit may be any unit of the parameter's dimension. updateMode relative adds value to the present one (multiplies with bridge_version 0.4.3).",
        input: inputs::set_parameter,
        output: PARAMETER,
        run: parameters::set,
        ..CHANGES
    },
    Tool {
        name: "run_simulation",
        title: "Run a simulation",
        about: "Starts a run as a job and gives the job's id. The run uses the parameters as they are now. runId becomes the name of the result.",
        input: inputs::run,
        output: "{jobId s, status s, queuedAt f, attempts i, maxRetries i, timeoutSeconds f}",
        run: jobs::run,
        ..CHANGES
    },
    Tool {
        name: "get_job_status",
        title: "Look at a job",
        about: "Tells where a job is: queued, running, succeeded, failed, cancelled or timeout. While it runs, progress has how much is done of how much, and the seconds left at that speed. With waitSeconds it waits that long for the end.",
        input: inputs::job_status,
        output: "{tool s, contractVersion s, jobId s, status s, ~progress {done f, total f?, unit s, secondsLeft f?}, submittedAt f?, startedAt f?, finishedAt f?, attempts i, maxRetries i, timeoutSeconds f?, cancelRequested b, resultId s?, resultHandle {resultsId s}?, error {message s}?, externalJobId s?, job {jobId s, status s, submittedAt f?, startedAt f?, finishedAt f?, attempts i, maxRetries i, timeoutSeconds f?, cancelRequested b, resultId s?, error {message s}?, externalJobId s?}}",
        run: jobs::status,
        ..LOOKS
    },
    Tool {
        name: "get_results",
        title: "Read results",
        about: "Gives the curves of a run: for each output its unit and its values by time in minutes. outputs chooses some by pattern; page and limit give some at a time.",
        input: inputs::results,
        output: "{tool s, contractVersion s, resultsId s, simulationId s, backend s?, generatedAt s, metadata o, ~ospVersion s, ~warnings [s], series [{parameter s, unit s, values [{time f, value f?}]}], ~page i, ~limit i, ~total i}",
        run: results::get,
        ..LOOKS
    },
    Tool {
        name: "run_population_simulation",
        title: "Run a population",
        about: "Starts a run of many individuals as a job. cohort.covariates spread parameters: {path, unit, distribution: normal|lognormal|uniform|discrete, mean, sd, min, max, values, weights}. outputs.timeSeries chooses curves ({path}), outputs.aggregates figures such as meanCmax or p95Auc.",
        input: inputs::run_population,
        output: "{jobId s, simulationId s, status s, queuedAt f, timeoutSeconds f, maxRetries i, ~warnings [s]}",
        run: jobs::run_population,
        ..CHANGES
    },
    Tool {
        name: "get_population_results",
        title: "Read results of a population",
        about: "Gives the figures over all individuals, and the chunks in which their curves are kept.",
        input: inputs::population_results,
        output: "{resultsId s, simulationId s, generatedAt s, cohort {size i, sampling s?, seed i?, covariates [o]}, aggregates {*: f?}, chunks [{chunkId s, uri s?, contentType s?, sizeBytes i?, subjectRange [i]?, timeRange [f]?, preview o?}], metadata o, ~ospVersion s, ~warnings [s]}",
        run: results::population,
        ..LOOKS
    },
    Tool {
        name: "calculate_pk_parameters",
        title: "Compute pharmacokinetic parameters",
        about: "Gives highest concentration, its time and the area under the curve for each output of a result, or for one. With catalogue: true also half-life, clearance and the other parameters of the suite, as they are defined for the model's applications.",
        input: inputs::pk,
        output: "{resultsId s, simulationId s, metrics [{parameter s, unit s?, cmax f?, tmax f?, auc f?, ~catalogue {*: f?}}]}",
        run: results::pk,
        ..LOOKS
    },
    Tool {
        name: "cancel_job",
        title: "Cancel a job",
        about: "Ends a job of yours: one that waits at once, one that runs as soon as its solver is asked.",
        operator: true,
        operation: Operation::Write,
        input: inputs::job,
        output: "{jobId s, status s}",
        run: jobs::cancel,
        ..LOOKS
    },
    Tool {
        name: "discover_models",
        title: "Find models",
        about: "Lists the model files in the allowed folders.",
        side_effects: &["fs_read"],
        input: inputs::discover,
        output: "{tool s, contractVersion s, items [o], page i, limit i, total i, trustSurfaceContract o}",
        run: models::discover,
        ..LOOKS
    },
    Tool {
        name: "run_sensitivity_analysis",
        title: "Analyse sensitivities",
        about: "Runs the simulation with one parameter changed at a time, and tells what that does to highest value, its time and area of each output. deltas are fractions: 0.1 is 10 per cent more. Blocks until all have run.",
        input: inputs::sensitivity,
        output: SENSITIVITY,
        run: sensitivity::run,
        ..CHANGES
    },
    Tool {
        name: "validate_simulation_request",
        title: "Validate a request",
        about: "Tells whether a loaded simulation can be used at a stage (exploration, development, internal-review, regulatory-submission): each check with what breaks it, by path.",
        input: inputs::validate,
        output: "{tool s, contractVersion s, simulationId s, backend s?, validation o, profile o, capabilities o, ngraObjects o, qualificationState o?, warnings [s], operatorReviewSignoff o, operatorReviewGovernance o}",
        run: review::validate,
        ..LOOKS
    },
    Tool {
        name: "run_verification_checks",
        title: "Verify a model",
        about: "Checks a loaded simulation: the file is what was loaded, parameters are numbers within their bounds, a run ends and its curves are numbers; with includePopulationSmoke also a few individuals.",
        input: inputs::verify,
        output: "{tool s, contractVersion s, simulationId s, backend s?, generatedAt s?, validation o, verification {status s, checks [o]}, profile o, capabilities o, qualificationState o?, warnings [s], ~ospVersion s, operatorReviewSignoff o, operatorReviewGovernance o}",
        run: review::verify,
        ..LOOKS
    },
    Tool {
        name: "export_oecd_report",
        title: "Export a report",
        about: "Gives what is known of a loaded simulation in one report: its checks, its capabilities and the table of its parameters.",
        input: inputs::report,
        output: "{tool s, contractVersion s, simulationId s, backend s?, generatedAt s?, ngraObjects o, qualificationState o?, report {request o, profile o, validation o, capabilities o, parameterTable [{path s, value f?, unit s}], operatorReviewSignoff o, operatorReviewGovernance o}, operatorReviewSignoff o, operatorReviewGovernance o}",
        run: review::report,
        ..LOOKS
    },
    Tool {
        name: "validate_model_manifest",
        title: "Validate a model file",
        about: "Checks a model file without loading it for use: whether it is a model, and whether its parameters are numbers within their bounds.",
        side_effects: &["fs_read"],
        input: inputs::manifest,
        output: "{tool s, contractVersion s, filePath s, backend s, runtimeFormat s, manifest o, ~manifestStatus s, ~qualificationState o, curationSummary o, trustSurfaceContract o}",
        run: review::manifest,
        ..LOOKS
    },
    Tool {
        name: "run_parameter_consistency_check",
        title: "Check parameters",
        about: "Checks a loaded simulation without running it: the file is what was loaded, and its parameters are numbers within their bounds. Each violation names the path and the reason.",
        input: inputs::simulation,
        output: "{tool s, contractVersion s, simulationId s, ok b, violationCount i, violations [s], summary s, checkedRules [s]}",
        run: review::consistent,
        ..LOOKS
    },
    Tool {
        name: "ingest_external_pbpk_bundle",
        title: "Take in an external run",
        about: "Puts what another platform says of a run into the form of a dossier. Artefacts in the allowed folders are compared with their SHA-256, and those that are models are checked; what fails is refused with its path and reason. Nothing is computed or assessed, and nothing is kept.",
        side_effects: &["fs_read"],
        input: inputs::bundle,
        output: "{tool s, contractVersion s, externalRun {objectType s, runId s, sourcePlatform s, sourceVersion s?, modelName s?, modelType s, executionDate s?, operator s?, sponsor s?, rawArtifacts [{type s, path s, checksum s?, title s?}], normalizationBoundary s}, ngraObjects o, warnings [s]}",
        run: bundle::ingest,
        ..LOOKS
    },
    Tool {
        name: "reset_parameter_value",
        title: "Reset a parameter",
        about: "Gives a parameter back the value or formula that its file has.",
        of_bridge: false,
        input: inputs::get_parameter,
        output: PARAMETER,
        run: parameters::reset,
        ..CHANGES
    },
    Tool {
        name: "unload_simulation",
        title: "Unload a simulation",
        about: "Forgets a loaded simulation and what was set in it. Its jobs and results stay.",
        of_bridge: false,
        input: inputs::simulation,
        output: "{simulationId s}",
        run: models::unload,
        ..CHANGES
    },
    Tool {
        name: "plot_results",
        title: "Plot results",
        about: "Draws curves of a result, at most 24, as a picture (PNG) and as an SVG; outputs chooses some by pattern, observed adds measured values.",
        of_bridge: false,
        input: inputs::plot,
        output: "{resultsId s, outputs [s], contentType s, data s, svg s}",
        run: plot::results,
        shown: Some(plot::plot_content),
        ..LOOKS
    },
    Tool {
        name: "fit_parameters",
        title: "Fit parameters",
        about: "Fits parameters of a loaded simulation to measured values, by least squares or by likelihood. parameters: {path, min, max}; observations: {output, unit, timeUnit, times, values, lloq, weight}; errors: log, absolute, additive, proportional, combined or log-normal. Gives each estimate with its 95 per cent interval; a likelihood gives AIC and BIC besides. Nothing is set unless apply is true.",
        of_bridge: false,
        input: inputs::fit,
        output: "{simulationId s, estimates [{path s, unit s, start f?, value f?, low f?, high f?, atBound b}], ospVersion s, sumOfSquares f?, sigma f?, observations i, degreesOfFreedom i, runs i, converged b, applied b, fitted [{output s, unit s, points [{time f?, observed f?, fitted f?}]}], ~likelihood {objective f?, aic f?, bic f?, sigmas [{output s, kind s, value f?}], hessian [{low f?, high f?}], starts [f?], warnings [s]}}",
        run: fit::run,
        ..CHANGES
    },
    Tool {
        name: "snapshot_simulation",
        title: "Keep the parameters",
        about: "Keeps what was set in a simulation, under the present time as its name.",
        of_bridge: false,
        operator: true,
        operation: Operation::Write,
        input: inputs::simulation,
        output: "{snapshot {snapshotId s, simulationId s, createdAt s, hash s}}",
        run: snapshots::keep,
        ..LOOKS
    },
    Tool {
        name: "restore_simulation",
        title: "Restore the parameters",
        about: "Loads a simulation's file again and sets what a snapshot has; the newest snapshot where none is named.",
        of_bridge: false,
        operator: true,
        operation: Operation::Write,
        side_effects: &["fs_read"],
        input: inputs::restore,
        output: "{snapshot {snapshotId s, simulationId s, createdAt s, hash s}}",
        run: snapshots::restore,
        ..LOOKS
    },
    Tool {
        name: "get_simulation_snapshot",
        title: "List snapshots",
        about: "Lists the snapshots of a simulation, newest first.",
        of_bridge: false,
        input: inputs::simulation,
        output: "{snapshots [{snapshotId s, simulationId s, createdAt s, hash s}], latestSnapshot {snapshotId s, simulationId s, createdAt s, hash s}?}",
        run: snapshots::list,
        ..LOOKS
    },
    Tool {
        name: "get_population_chunk",
        title: "Read a part of a population",
        about: "Gives the curves of some individuals of a population. subjects chooses individuals, outputs curves.",
        of_bridge: false,
        input: inputs::chunk,
        output: "{resultsId s, chunkId s, series [{subjectId i, ~parameter s, time [f], concentration [f?]}], totalSubjects i}",
        run: results::chunk,
        ..LOOKS
    },
    Tool {
        name: "list_simulations",
        title: "List loaded simulations",
        about: "Lists what the caller has loaded: id, file, format, and how many parameters were set.",
        of_bridge: false,
        input: inputs::listing,
        output: "{items [{simulationId s, filePath s, modelSha256 s, name s?, parameters i, parametersSet i, states i}], page i, limit i, total i}",
        run: models::list,
        ..LOOKS
    },
    Tool {
        name: "get_review_signoff",
        title: "Look at a sign-off",
        about: "Tells what a reviewer has signed off of a simulation in a scope, and whether that is what is loaded now.",
        of_bridge: false,
        input: inputs::signoff,
        output: SIGNOFF,
        run: signoff::get,
        ..LOOKS
    },
    Tool {
        name: "get_review_signoff_history",
        title: "Read all sign-offs",
        about: "Lists what was signed off and revoked, the newest first, and tells whether the entries are what was written.",
        of_bridge: false,
        input: inputs::signoff_history,
        output: SIGNOFF_HISTORY,
        run: signoff::history,
        ..LOOKS
    },
    Tool {
        name: "record_review_signoff",
        title: "Sign off",
        about: "Records that the caller has looked at what a tool said of a loaded simulation, and what they made of it. It changes no rule and no qualification.",
        of_bridge: false,
        input: inputs::record_signoff,
        output: SIGNOFF,
        run: signoff::record,
        ..CHANGES
    },
    Tool {
        name: "revoke_review_signoff",
        title: "Revoke a sign-off",
        about: "Takes the newest sign-off back. The entry stays in the history.",
        of_bridge: false,
        input: inputs::revoke_signoff,
        output: SIGNOFF,
        run: signoff::revoke,
        ..CHANGES
    },
];

const SIGNOFF: &str = "{operatorReviewSignoff {summaryVersion s, simulationId s, scope s, scopeLabel s, status s, disposition s?, plainLanguageSummary s, limitationsAccepted [s], reviewFocus [s], rationale s?, recordedAt s?, recordedBy {subject s, roles [s], tokenId s?, isServiceAccount b}?, revokedAt s?, revokedBy {subject s, roles [s], tokenId s?, isServiceAccount b}?, revocationRationale s?, changesQualificationState b, confersDecisionAuthority b, traceability {sourceEventType s?, sourceEventId s?, sourceEventHash s?, previousHash s?}}, operatorReviewGovernance {governanceVersion s, scope s, scopeLabel s, workflowStatus s, plainLanguageSummary s, supportsRecordedSignoff b, supportsRevocation b, supportsOverride b, supportsAdjudication b, signoffChangesQualificationState b, signoffConfersDecisionAuthority b, externalAuthorityRequiredForOverrides b, nonGoals [s]}}";

const SIGNOFF_HISTORY: &str = "{operatorReviewSignoffHistory {historyVersion s, simulationId s, scope s, scopeLabel s, status s, readableAuditHistory b, plainLanguageSummary s, latestStatus s, latestDisposition s?, returnedEntryCount i, totalEntryCount i, truncated b, entries [{eventType s, action s, timestamp s, disposition s?, rationale s, limitationsAccepted [s], reviewFocus [s], actor {subject s, roles [s], tokenId s?, isServiceAccount b}, serviceVersion s, traceability {sourceEventId s, sourceEventHash s, previousHash s}}]}, operatorReviewGovernance {governanceVersion s, scope s, scopeLabel s, workflowStatus s, plainLanguageSummary s, supportsRecordedSignoff b, supportsRevocation b, supportsOverride b, supportsAdjudication b, signoffChangesQualificationState b, signoffConfersDecisionAuthority b, externalAuthorityRequiredForOverrides b, nonGoals [s]}}";

const SENSITIVITY: &str = "{report {simulation_id s, model_path s, baseline_metrics [{parameter s, unit s?, cmax f?, tmax f?, auc f?}], scenarios [{scenario_id s, simulation_id s, parameter_path s?, percent_change f, absolute_value f?, job_id s, job_status s, run_id s?, results_id s?, error s?, metrics [{parameter s, unit s?, cmax f?, tmax f?, auc f?}], delta_percent {*: {cmax f?, tmax f?, auc f?}}}], failures [s]}, csv {filename s, contentType s, data s, path s}}";

const PARAMETER: &str =
    "{parameter {path s, value f?, unit s, displayName s?, lastUpdatedAt s?, source s?}}";
