//! Every case with reference numbers: file, error of the reference itself, bounds.

/// A file and how near its run must come to the reference.
pub struct Case {
    /// Folder and file.
    pub file: &'static str,
    /// Name of the reference.
    pub reference: &'static str,
    /// Error of the reference against a tight solution.
    pub error: f64,
    /// Largest deviation at the file's tolerances, where it is not the general rule.
    pub bound: Option<f64>,
    /// Deviations measured when the case was last looked at: at the file's tolerances, and tight.
    pub recorded: (f64, f64),
}

/// How far above the recorded deviation a run may lie, and below what it is rounding.
const RECORDED_FACTOR: f64 = 3.0;
const ROUNDING: f64 = 1e-12;

fn gated(rule: f64, recorded: f64) -> f64 {
    rule.min((RECORDED_FACTOR * recorded).max(ROUNDING))
}

const fn case(file: &'static str, reference: &'static str, error: f64) -> Case {
    Case {
        file,
        reference,
        error,
        bound: None,
        recorded: (0.0, 0.0),
    }
}

const fn bounded(file: &'static str, reference: &'static str, error: f64, bound: f64) -> Case {
    Case {
        file,
        reference,
        error,
        bound: Some(bound),
        recorded: (0.0, 0.0),
    }
}

impl Case {
    const fn recorded(self, loose: f64, tight: f64) -> Self {
        Self {
            recorded: (loose, tight),
            ..self
        }
    }

    /// Allowed at the file's tolerances: by the rule, and at most three times what was recorded.
    pub fn loose(&self, rel_tol: f64) -> f64 {
        let rule = (10.0 * rel_tol).max(3.0 * self.error).max(1e-6);
        gated(self.bound.unwrap_or(rule), self.recorded.0)
    }

    /// Allowed at rtol 1e-10 and the file's atol times 1e-5.
    pub fn tight(&self) -> f64 {
        gated(1.2 * self.error + 1e-6, self.recorded.1)
    }
}

pub const PKML: [Case; 8] = [
    bounded(
        "pkml/pksim_simple_simulation.pkml",
        "pksim_simple_simulation",
        3.0e-5,
        1e-3,
    )
    .recorded(2.1e-4, 3.0e-5),
    case("pkml/coreR_not_ok_sim.pkml", "coreR_not_ok_sim", 4.7e-4).recorded(2.3e-5, 4.7e-4),
    case(
        "pkml/pksim_S1_concentrBased.pkml",
        "pksim_S1_concentrBased",
        6.9e-4,
    )
    .recorded(9.2e-5, 6.9e-4),
    case(
        "pkml/pi_IR_model_doseResponse.pkml",
        "pi_IR_model_doseResponse",
        7.8e-4,
    )
    .recorded(6.4e-5, 7.8e-4),
    case(
        "pkml/pi_StepIncrease_100nm.pkml",
        "pi_StepIncrease_100nm",
        4.0e-3,
    )
    .recorded(4.5e-6, 4.0e-3),
    bounded("pkml/coreR_simple.pkml", "coreR_simple", 8.5e-5, 1e-3).recorded(8.8e-15, 8.5e-5),
    bounded("pkml/ospr_simple.pkml", "ospr_simple", 2.7e-4, 1e-3).recorded(5.4e-15, 2.7e-4),
    bounded(
        "pkml/simmodel_RemoveBelowAbsTolTest.pkml",
        "simmodel_RemoveBelowAbsTolTest",
        1e-9,
        1e-5,
    )
    .recorded(0.0, 5.6e-16),
];

pub const XML: [Case; 32] = [
    bounded(
        "simmodel/12.0_Brockmoller2005_CPA.xml",
        "12.0_Brockmoller2005_CPA",
        2.9e-5,
        1e-4,
    )
    .recorded(2.9e-5, 2.9e-5),
    bounded(
        "simmodel/AdultPopulation.xml",
        "AdultPopulation",
        6e-9,
        1e-6,
    )
    .recorded(2.4e-9, 6.2e-9),
    bounded(
        "simmodel/PKSim_Input_BelowAbsTol.xml",
        "PKSim_Input_BelowAbsTol",
        6e-9,
        1e-6,
    )
    .recorded(3.3e-9, 4.8e-9),
    case("simmodel/BCM_Platelet6Lit.xml", "BCM_Platelet6Lit", 6.8e-4).recorded(2.5e-4, 6.8e-4),
    bounded(
        "simmodel/pH_Solubility_Table.xml",
        "pH_Solubility_Table",
        4.2e-4,
        1.3e-3,
    )
    .recorded(4.9e-4, 4.2e-4),
    bounded(
        "simmodel/ConstZeroTableFormulation.xml",
        "ConstZeroTableFormulation",
        0.0,
        1e-6,
    )
    .recorded(0.0, 0.0),
    bounded("simmodel/OralTable01.xml", "OralTable01", 1.4e-2, 4.3e-2).recorded(1.4e-2, 1.4e-2),
    bounded(
        "simmodel/TableParametersViaDCI_Test01.xml",
        "TableParametersViaDCI_Test01",
        8.0e-3,
        2.4e-2,
    )
    .recorded(8.2e-3, 8.0e-3),
    bounded("simmodel/PKSim_Input_01.xml", "PKSim_Input_01", 1e-8, 1e-6).recorded(8.6e-9, 1.1e-8),
    bounded(
        "simmodel/PKSim_Input_NewSchema_01.xml",
        "PKSim_Input_NewSchema_01",
        9e-8,
        1e-6,
    )
    .recorded(1.2e-8, 8.8e-8),
    bounded(
        "simmodel/POP_EHC_StartTime.xml",
        "POP_EHC_StartTime",
        1.9e-3,
        5.8e-3,
    )
    .recorded(2.1e-3, 1.9e-3),
    bounded(
        "simmodel/NonMonotoneBasegridTest.xml",
        "NonMonotoneBasegridTest",
        8.1e-7,
        2.5e-6,
    )
    .recorded(4.2e-8, 6.8e-7),
    bounded("simmodel/VersionTest.xml", "VersionTest", 1e-8, 1e-3).recorded(1.1e-12, 1.0e-11),
    bounded(
        "simmodel/RemoveBelowAbsTolTest.xml",
        "RemoveBelowAbsTolTest",
        1e-9,
        1e-5,
    )
    .recorded(0.0, 5.6e-16),
    bounded(
        "simmodel/TestExportUsedParameters02.xml",
        "TestExportUsedParameters02",
        0.0,
        1e-3,
    )
    .recorded(0.0, 0.0),
    bounded(
        "simmodel/PersistableOutputsTest.xml",
        "PersistableOutputsTest",
        0.0,
        0.0,
    )
    .recorded(0.0, 0.0),
    bounded(
        "simmodel/OutputSchemaSaveToXml.xml",
        "OutputSchemaSaveToXml",
        0.0,
        0.0,
    )
    .recorded(0.0, 0.0),
    bounded(
        "simmodel/Test4SavingSpeciesInitialValues.xml",
        "Test4SavingSpeciesInitialValues",
        0.0,
        0.0,
    )
    .recorded(0.0, 0.0),
    bounded(
        "simmodel/SimModel4_ExampleInput04.xml",
        "SimModel4_ExampleInput04",
        0.0,
        0.0,
    )
    .recorded(0.0, 0.0),
    bounded(
        "simmodel/SimModel4_ExampleInput06.xml",
        "SimModel4_ExampleInput06",
        7e-8,
        1e-6,
    )
    .recorded(3.2e-9, 5.4e-8),
    bounded(
        "simmodel/SimModel4_ExampleInput06_NewSchema.xml",
        "SimModel4_ExampleInput06_NewSchema",
        7e-8,
        1e-6,
    )
    .recorded(6.4e-14, 7.0e-8),
    bounded(
        "simmodel/TestAllParametersInitialValues.xml",
        "TestAllParametersInitialValues",
        7e-8,
        1e-6,
    )
    .recorded(6.4e-14, 7.0e-8),
    bounded(
        "simmodel/SimModel4_ExampleInput06_Modified.xml",
        "SimModel4_ExampleInput06_Modified",
        3.4e-7,
        1.1e-6,
    )
    .recorded(4.7e-10, 3.4e-7),
    bounded(
        "simmodel/SimModel4_ExampleInput06_Modified2.xml",
        "SimModel4_ExampleInput06_Modified2",
        3.4e-7,
        1.1e-6,
    )
    .recorded(1.3e-11, 3.4e-7),
    bounded(
        "simmodel/SimModel4_ExampleInput06_Modified_V4.xml",
        "SimModel4_ExampleInput06_Modified_V4",
        3.4e-7,
        1.1e-6,
    )
    .recorded(4.7e-10, 3.4e-7),
    bounded("simmodel/S3_reduced.xml", "S3_reduced", 5.2e-6, 1.6e-5).recorded(3.6e-15, 5.2e-6),
    bounded(
        "simmodel/PKModelCoreCaseStudy_01.xml",
        "PKModelCoreCaseStudy_01",
        1e-8,
        1e-6,
    )
    .recorded(1.8e-10, 7.2e-9),
    bounded(
        "simmodel/TestSimultanEvents.xml",
        "TestSimultanEvents",
        0.0,
        1e-5,
    )
    .recorded(0.0, 0.0),
    bounded("simmodel/NaN_Inf_NegInf.xml", "NaN_Inf_NegInf", 0.0, 0.0).recorded(0.0, 0.0),
    bounded(
        "simmodel/Nan_If_Conditional_Min_Max.xml",
        "Nan_If_Conditional_Min_Max",
        0.0,
        0.0,
    )
    .recorded(0.0, 0.0),
    bounded(
        "simmodel/PersistableParams.xml",
        "PersistableParams",
        0.0,
        1e-5,
    )
    .recorded(0.0, 0.0),
    bounded(
        "simmodel/NegativeValuesForbidden_CheckSettingFalse.xml",
        "NegativeValuesForbidden_CheckSettingFalse",
        0.0,
        1e-6,
    )
    .recorded(0.0, 0.0),
];

/// The restated pkml files, on which the reference ran as they are: path prefix `S`.
pub const RESTATED: [Case; 8] = [
    bounded(
        "ref/pksim_simple_simulation.simmodel.xml",
        "pksim_simple_simulation",
        3.0e-5,
        1e-4,
    )
    .recorded(2.2e-5, 3.0e-5),
    case(
        "ref/coreR_not_ok_sim.simmodel.xml",
        "coreR_not_ok_sim",
        4.7e-4,
    )
    .recorded(2.3e-5, 4.7e-4),
    case(
        "ref/pksim_S1_concentrBased.simmodel.xml",
        "pksim_S1_concentrBased",
        6.9e-4,
    )
    .recorded(9.2e-5, 6.9e-4),
    case(
        "ref/pi_IR_model_doseResponse.simmodel.xml",
        "pi_IR_model_doseResponse",
        7.8e-4,
    )
    .recorded(6.4e-5, 7.8e-4),
    case(
        "ref/pi_StepIncrease_100nm.simmodel.xml",
        "pi_StepIncrease_100nm",
        4.0e-3,
    )
    .recorded(4.5e-6, 4.0e-3),
    bounded(
        "ref/coreR_simple.simmodel.xml",
        "coreR_simple",
        8.5e-5,
        1e-3,
    )
    .recorded(8.8e-15, 8.5e-5),
    bounded("ref/ospr_simple.simmodel.xml", "ospr_simple", 2.7e-4, 1e-3).recorded(5.4e-15, 2.7e-4),
    bounded(
        "ref/simmodel_RemoveBelowAbsTolTest.simmodel.xml",
        "simmodel_RemoveBelowAbsTolTest",
        1e-9,
        1e-5,
    )
    .recorded(0.0, 5.6e-16),
];
