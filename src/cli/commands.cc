// The list of subcommands. To add a subcommand, define a row in a file of its own, and add the
// row's name to both lists here.
#include "cli/commands.h"

namespace lockstep::cli {

// Each row is defined in the file of its subcommand. Rows cannot add themselves to a list: they are
// constants, and nothing runs before main().
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
extern const Subcommand kHostEnter;
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
extern const Subcommand kTop;
extern const Subcommand kPage;
extern const Subcommand kEvents;
extern const Subcommand kTrace;
extern const Subcommand kProfile;
extern const Subcommand kNotifyPost;
extern const Subcommand kHostGpus;
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
extern const Subcommand kHostRental;
extern const Subcommand kSubmit;
extern const Subcommand kOffers;
extern const Subcommand kUp;
extern const Subcommand kDown;
extern const Subcommand kKeep;
extern const Subcommand kCost;
extern const Subcommand kCloud;
extern const Subcommand kSlurmAsk;
extern const Subcommand kSlurmBatch;
extern const Subcommand kSlurmNode;
extern const Subcommand kSlurmLaunch;
extern const Subcommand kSlurmRank;
extern const Subcommand kCompleteNames;

namespace {

Result<ExitCode> version_command(const Call& /*call*/) {
  return print_version();
}

// Treats `lockstep help run` as `lockstep run --help`. Drops the words behind the subcommand's
// name, because dispatch would start a script among these words.
Result<ExitCode> help_command(const Call& call) {
  const Found found = find_row(call.program, call.words);
  // Keep one unknown word behind a group (`help cluster bogus`): dispatch then names the mistake.
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

// Rows in the order of the overview. Unlisted rows come last. Each row has its own line: branches
// with new rows then merge without conflicts.
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
    &kTop,
    &kPage,
    &kEvents,
    &kTrace,
    &kProfile,
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
    &kHostEnter,
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
    &kHostRental,
    &kSlurmAsk,
    &kSlurmBatch,
    &kSlurmNode,
    &kSlurmLaunch,
    &kSlurmRank,
    &kNotifyPost,
    &kHostGpus,
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
