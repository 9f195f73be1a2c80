// The list of subcommands. A new subcommand is a file that defines a row, and its name in the two
// lists here.
#include "cli/commands.h"

namespace lockstep::cli {

// From the files of these names.
extern const Subcommand kRun;
extern const Subcommand kLaunch;
extern const Subcommand kTorchrun;
extern const Subcommand kStore;
extern const Subcommand kExec;
extern const Subcommand kCall;
extern const Subcommand kCluster;
extern const Subcommand kInstall;
extern const Subcommand kLink;
extern const Subcommand kInProject;
extern const Subcommand kSync;
extern const Subcommand kHostTree;
extern const Subcommand kHostSetup;
extern const Subcommand kRsyncShell;
extern const Subcommand kHostJob;
extern const Subcommand kHostSubmit;
extern const Subcommand kJobs;
extern const Subcommand kLogs;
extern const Subcommand kWait;
extern const Subcommand kCancel;
extern const Subcommand kHostFacts;
extern const Subcommand kResume;
extern const Subcommand kHostDial;
extern const Subcommand kSsh;
extern const Subcommand kForward;
extern const Subcommand kDoctor;
extern const Subcommand kWhy;
extern const Subcommand kPdsh;
extern const Subcommand kCheck;
extern const Subcommand kWheel;
extern const Subcommand kWheelC;
extern const Subcommand kWheelCxx;
extern const Subcommand kHostOverlay;
extern const Subcommand kHostAbility;
extern const Subcommand kHostHealth;
extern const Subcommand kHostLease;
extern const Subcommand kGuardRentals;
extern const Subcommand kFollowRented;
extern const Subcommand kHostGuard;
extern const Subcommand kSubmit;
extern const Subcommand kOffers;
extern const Subcommand kUp;
extern const Subcommand kDown;
extern const Subcommand kKeep;
extern const Subcommand kCost;
extern const Subcommand kCloud;
extern const Subcommand kSlurmBatch;
extern const Subcommand kSlurmNode;
extern const Subcommand kSlurmLaunch;
extern const Subcommand kSlurmRank;
extern const Subcommand kCompleteNames;

namespace {

Result<ExitCode> version_command(const Call& /*call*/) {
  return print_version();
}

// `lockstep help run` is `lockstep run --help`. Words behind the subcommand's name are dropped: a
// script's name among them would be run.
Result<ExitCode> help_command(const Call& call) {
  const Found found = find_row(call.program, call.words);
  const bool one_more = !found.row->rows.empty() && found.words < call.words.size();
  Args words(call.words.begin(),
             call.words.begin() + static_cast<std::ptrdiff_t>(found.words + (one_more ? 1 : 0)));
  words.emplace_back("--help");
  return dispatch(call.program, call.program.root.name, std::move(words));
}

constexpr Subcommand kVersion{
    .name = "version", .summary = "print the version", .run = version_command};
constexpr Subcommand kHelp{
    .name = "help", .summary = "list the commands, or show the help of one", .run = help_command};

// In the overview's order, unlisted rows last. One row a line, so that branches that add rows
// merge.
// clang-format off
constexpr const Subcommand* kRows[] = {
    &kRun,
    &kLaunch,
    &kSubmit,
    &kJobs,
    &kLogs,
    &kWait,
    &kCancel,
    &kResume,
    &kCheck,
    &kWhy,
    &kExec,
    &kSsh,
    &kForward,
    &kSync,
    &kInstall,
    &kCall,
    &kCluster,
    &kOffers,
    &kUp,
    &kDown,
    &kKeep,
    &kCost,
    &kCloud,
    &kDoctor,
    &kWheel,
    &kStore,
    &kVersion,
    &kHelp,
    &kLink,
    &kHostJob,
    &kHostSubmit,
    &kHostTree,
    &kHostSetup,
    &kRsyncShell,
    &kInProject,
    &kHostFacts,
    &kHostDial,
    &kPdsh,
    &kHostOverlay,
    &kHostAbility,
    &kHostHealth,
    &kHostLease,
    &kGuardRentals,
    &kFollowRented,
    &kHostGuard,
    &kSlurmBatch,
    &kSlurmNode,
    &kSlurmLaunch,
    &kSlurmRank,
    &kCompleteNames,
};
// clang-format on
constexpr const Subcommand* kLinks[] = {&kTorchrun, &kPdsh};
constexpr const Subcommand* kOwnLinks[] = {&kWheelC, &kWheelCxx};

constexpr Program kProgram{
    .root = {.name = "lockstep",
             .summary = "Starts a training command on every rank and keeps it running",
             .rows = kRows},
    .links = kLinks,
    .notes =
        "Through a link named torchrun this program is 'lockstep run', through one named pdsh\n"
        "it stands in for pdsh.\n",
    .own_links = kOwnLinks};

}  // namespace

const Program& lockstep_program() {
  return kProgram;
}

}  // namespace lockstep::cli
