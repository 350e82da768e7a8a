# Runs simulations with the package ospsuite for the process that has started this one. Both speak in frames: a letter, a
# length of 8 bytes, the bytes. What packages print goes to standard error; standard output has frames alone.
sink(stderr())
output <- file("/dev/stdout", "wb")

say <- function(kind, bytes) {
  # What cannot be told must fail before a part of its frame is written.
  force(bytes)
  writeBin(charToRaw(kind), output)
  writeBin(c(length(bytes), 0L), output, size = 4L, endian = "little")
  writeBin(bytes, output)
  flush(output)
}

hear <- function() {
  kind <- readBin(input, "raw", 1L)
  if (length(kind) == 0L) quit("no")
  count <- readBin(input, "integer", 2L, 4L, endian = "little")[[1L]]
  bytes <- readBin(input, "raw", count)
  text <- rawToChar(bytes)
  Encoding(text) <- "UTF-8"
  list(kind = rawToChar(kind), lines = strsplit(text, "\n", fixed = TRUE)[[1L]])
}

# The simulation that was loaded last, and the paths of what was set in it.
kept <- list(content = "", simulation = NULL, set = character())

run <- function(lines) {
  at <- 0L
  one <- function() {
    at <<- at + 1L
    lines[[at]]
  }
  some <- function(read) vapply(seq_len(as.integer(one())), function(number) read(), "")
  file <- one()
  content <- one()
  outputs <- some(one)
  paths <- some(one)
  values <- as.numeric(some(one))
  if (!identical(kept$content, content)) {
    simulation <- ospsuite::loadSimulation(file, loadFromCache = FALSE)
    kept <<- list(content = content, simulation = simulation, set = character())
  }
  simulation <- kept$simulation
  for (path in kept$set) ospsuite::getParameter(path, simulation)$reset()
  kept$set <<- paths
  if (length(paths) > 0L) ospsuite::setParameterValuesByPath(paths, values, simulation)
  ospsuite::clearOutputs(simulation)
  ospsuite::addOutputs(outputs, simulation)
  results <- ospsuite::runSimulations(simulation)[[1L]]
  table <- ospsuite::getOutputValues(results, quantitiesOrPaths = outputs)$data
  columns <- unlist(table[c("Time", outputs)], use.names = FALSE)
  say("n", writeBin(as.numeric(c(nrow(table), columns)), raw(), endian = "little"))
}

# A stand-in for the package, which tests use, says that it is one.
about <- function() {
  loadNamespace("ospsuite")
  has <- exists("standIn", envir = asNamespace("ospsuite"), inherits = FALSE)
  c(R.version.string, as.character(utils::packageVersion("ospsuite")), if (has) "stand-in" else "genuine", tempdir())
}

repeat {
  asked <- hear()
  tryCatch(
    if (asked$kind == "t") say("T", charToRaw(paste(about(), collapse = "\n"))) else run(asked$lines),
    error = function(wrong) say("f", charToRaw(enc2utf8(conditionMessage(wrong))))
  )
}
