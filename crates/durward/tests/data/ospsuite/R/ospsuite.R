# The functions of ospsuite that Durward calls. Nothing is solved: a curve decays from the product of what was set. A simulation in
# which "R1|k1" is set to more than 1000 takes so many thousandths of a second, and writes down its process, so that it can be met in the middle.

standIn <- TRUE

loadSimulation <- function(filePath, loadFromCache = FALSE) {
  if (!file.exists(filePath)) stop("there is no file ", filePath)
  message("loaded ", filePath)
  print("printed on standard output")
  simulation <- new.env()
  simulation$set <- list()
  simulation$outputs <- character()
  simulation
}

getParameter <- function(path, container) {
  list(reset = function() container$set[[path]] <- NULL)
}

setParameterValuesByPath <- function(parameterPaths, values, simulation) {
  for (at in seq_along(parameterPaths)) simulation$set[[parameterPaths[[at]]]] <- values[[at]]
}

clearOutputs <- function(simulation) simulation$outputs <- character()

addOutputs <- function(quantitiesOrPaths, simulation) simulation$outputs <- quantitiesOrPaths

runSimulations <- function(simulations) {
  set <- simulations$set
  delay <- set[["R1|k1"]]
  if (!is.null(delay) && delay > 1000) {
    note <- file.path(.libPaths()[[1L]], "running")
    writeLines(as.character(Sys.getpid()), paste0(note, ".new"))
    file.rename(paste0(note, ".new"), note)
    Sys.sleep(delay / 1000)
  }
  if (any(unlist(set) < 0)) stop("a negative value was set")
  times <- seq(0, 10)
  curve <- prod(unlist(set)) * exp(-times / 10)
  list(list(times = times, curves = lapply(seq_along(simulations$outputs), function(at) at * curve)))
}

getOutputValues <- function(simulationResults, quantitiesOrPaths) {
  data <- data.frame(IndividualId = 0L, Time = simulationResults$times)
  for (at in seq_along(quantitiesOrPaths)) data[[quantitiesOrPaths[[at]]]] <- simulationResults$curves[[at]]
  list(data = data)
}
