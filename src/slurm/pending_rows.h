// The reasons and texts with which Slurm 22.05 to 26.05 says why a job waits, one row each. The
// first matching row counts. Limits of accounts and QOS are in limit_words.cc. A test holds the
// list of all reasons in Slurm's sources (pending_reason_list_test.cc).
#pragma once

#include "slurm/pending_reason.h"

#include <array>
#include <string_view>

namespace lockstep::slurm::pending_rows {

struct Row {
  std::string_view
      reason;  // as scontrol writes it, with underscores for spaces; a star matches any text
  Outlook outlook;
  std::string_view why;
  std::string_view advice;
};

inline constexpr std::string_view kWithoutReservation =
    "scontrol update JobId={id} ReservationName= and scontrol release {id} start it without";
inline constexpr std::string_view kBurstBufferFailed = "the job's burst buffer failed: {reason}";
inline constexpr std::string_view kBurstBufferAdvice =
    "scontrol show burstbuffer shows the error; ask the cluster's administrators";
inline constexpr std::string_view kTopology =
    "fewer nodes, or another --segment or --switches, fit more easily; scontrol show topology "
    "shows the parts";

// Placeholders in the texts: {reason} (as Slurm says it), {id}, {partition}, {account}, {qos},
// {nodes} (how many the job asks for), {time}, {detail} (what Slurm writes behind the reason),
// {dependency}, {eligible}.
inline constexpr std::array kRows = {
    Row{"None", Outlook::starts_by_itself, "Slurm has not looked at the job yet", ""},
    Row{"WaitingForScheduling", Outlook::starts_by_itself, "Slurm has not looked at the job yet",
        ""},
    Row{"Resources", Outlook::starts_by_itself,
        "the job is next, but other jobs use the requested resources",
        "a shorter --time or fewer nodes may fit into a gap sooner"},
    Row{"Priority", Outlook::starts_by_itself,
        "jobs of higher priority wait in partition {partition}",
        "a shorter --time or fewer nodes may fit into a gap sooner (sprio -j {id} shows the parts "
        "of the job's priority)"},
    Row{"Nodes_required_for_job_are_DOWN*", Outlook::starts_by_itself,
        "not enough nodes are free: some usable nodes are down, drained or kept for jobs of higher "
        "priority",
        "fewer nodes or another partition may start the job sooner"},
    Row{"Required_node_not_available*", Outlook::needs_site,
        "a required node is down, drained or reserved",
        "leave out --nodelist, or name other nodes"},
    Row{"ReqNodeNotAvail*Reserved_for_maintenance", Outlook::starts_by_itself,
        "the nodes are reserved for maintenance before the job could end",
        "a --time that ends before the maintenance starts the job now (scontrol show reservation "
        "shows when)"},
    Row{"ReqNodeNotAvail,_May_be_reserved_for_other_job", Outlook::starts_by_itself,
        "a required node is planned for another job",
        "a shorter --time may fit in before the other job"},
    Row{"ReqNodeNotAvail*", Outlook::needs_site, "a required node is not available{detail}",
        "leave out --nodelist, or name other nodes; a --time that ends before a reservation may "
        "help, too"},
    Row{"NodeDown", Outlook::needs_site, "a required node is down",
        "leave out --nodelist, or name other nodes"},
    Row{"Dependency", Outlook::starts_by_itself, "the job waits for other jobs: {dependency}", ""},
    Row{"DependencyNeverSatisfied", Outlook::never,
        "another job did not end as this job's dependency demands: {dependency}",
        "scancel {id} and submit again, or scontrol update JobId={id} Dependency= to start without "
        "the dependency"},
    Row{"BeginTime", Outlook::starts_by_itself, "the job may not start before {eligible}",
        "scontrol update JobId={id} StartTime=now starts the job earlier"},
    Row{"JobHeldUser", Outlook::held, "the owner holds the job", "scontrol release {id}"},
    Row{"JobHeldAdmin", Outlook::needs_site, "an administrator holds the job",
        "ask the cluster's administrators"},
    Row{"JobHoldMaxRequeue", Outlook::held,
        "Slurm holds the job because the start failed too often (MaxBatchRequeue)",
        "find out why the start failed, then scontrol release {id}"},
    Row{"launch_failure_limit_exceeded_requeued_held", Outlook::held,
        "Slurm holds the job because the start failed too often (MaxBatchRequeue)",
        "find out why the start failed, then scontrol release {id}"},
    Row{"MaxRequeue*", Outlook::held, "Slurm holds the job because of too many requeues",
        "find out why the start failed, then scontrol release {id}"},
    Row{"launch_failed_requeued_held", Outlook::held,
        "a node could not start the job, usually because a check before jobs (prolog) failed; "
        "Slurm holds the job now",
        ""},
    Row{"job_requeued_in_held_state", Outlook::held, "the job was queued again and is held",
        "scontrol release {id}"},
    Row{"job_requeued_in_special_exit_state", Outlook::held,
        "the job ended with a special exit code of the cluster (RequeueExitHold) and is held",
        "read the output of the last run, then scontrol release {id}"},
    Row{"user_env_retrieval_failed_requeued_held", Outlook::held,
        "Slurm holds the job because the first node could not load the user's environment "
        "(--get-user-env)",
        "scontrol release {id} tries again; without --get-user-env no node loads the environment"},
    Row{"Prolog", Outlook::starts_by_itself, "the cluster prepares the start (PrologSlurmctld)",
        ""},
    Row{"Cleaning", Outlook::starts_by_itself,
        "the last run is still being cleaned up on the nodes", ""},
    Row{"PartitionNodeLimit", Outlook::never,
        "the job asks for {nodes}, more than partition {partition} has or allows",
        "ask for fewer nodes, or name another partition (-p)"},
    Row{"PartitionTimeLimit", Outlook::never,
        "the job asks for {time}, longer than partition {partition} allows",
        "scontrol update JobId={id} TimeLimit=..., or name another partition (-p)"},
    Row{"PartitionDown", Outlook::needs_site, "partition {partition} is down: it starts no jobs",
        "name another partition (-p), or wait"},
    Row{"PartitionInactive", Outlook::needs_site,
        "partition {partition} is inactive: it takes and starts no jobs",
        "name another partition (-p), or wait"},
    Row{"PartitionConfig", Outlook::never,
        "the job's options conflict with the settings of partition {partition}",
        "scontrol show partition {partition} shows the settings"},
    Row{"MaxMemPerLimit", Outlook::never,
        "the job asks for more memory than partition {partition} allows on a node or CPU",
        "ask for less with --mem"},
    Row{"BadConstraints", Outlook::never, "no node of the cluster has the requested resources",
        "see --constraint, --gres, --mem and --cpus-per-task; sinfo -o '%P %c %m %G %f' shows what "
        "nodes have"},
    Row{"Constraints", Outlook::never, "no node of the cluster has the requested resources",
        "see --constraint, --gres, --mem and --cpus-per-task; sinfo -o '%P %c %m %G %f' shows what "
        "nodes have"},
    Row{"Reservation", Outlook::starts_by_itself,
        "the job's reservation has not begun, or is in use", "scontrol show reservation says when"},
    Row{"ReservationDeleted", Outlook::held,
        "the job's reservation is gone, and Slurm holds the job", kWithoutReservation},
    Row{"Reservation_*_was_deleted", Outlook::held,
        "the job's reservation is gone, and Slurm holds the job", kWithoutReservation},
    Row{"ReservationInvalid", Outlook::held,
        "the job's reservation cannot be used, and Slurm holds the job", kWithoutReservation},
    Row{"Reservation_*_is_invalid", Outlook::held,
        "the job's reservation cannot be used, and Slurm holds the job", kWithoutReservation},
    Row{"Licenses", Outlook::starts_by_itself, "the requested licenses are in use",
        "scontrol show licenses lists all licenses"},
    Row{"License_request_*", Outlook::held,
        "the cluster no longer has the requested licenses, and Slurm holds the job",
        "scontrol update JobId={id} Licenses=... and scontrol release {id} start the job with "
        "others"},
    Row{"MaxPoweredUpNodes", Outlook::starts_by_itself,
        "the cluster powers up no more nodes at once", ""},
    Row{"MpiPortsBusy", Outlook::starts_by_itself, "Slurm's ports for MPI are in use on the nodes",
        ""},
    Row{"NvidiaImexChannels", Outlook::starts_by_itself,
        "all channels by which GPUs of several nodes share memory (NVIDIA IMEX) are in use", ""},
    Row{"JobArrayTaskLimit", Outlook::starts_by_itself,
        "the array's limit of running tasks is reached (the number behind % of --array)",
        "scontrol update ArrayTaskThrottle=N JobId={id} allows more"},
    Row{"InvalidAccount", Outlook::never, "account {account} does not exist, or you may not use it",
        "sacctmgr show associations user=$USER shows yours; then give -A"},
    Row{"AccountNotAllowed", Outlook::never, "partition {partition} is not for account {account}",
        "name another partition (-p) or account (-A)"},
    Row{"Job's_account_not_*", Outlook::never, "partition {partition} is not for account {account}",
        "name another partition (-p) or account (-A)"},
    Row{"uid_*_not_in_group_permitted_to_use_this_partition*", Outlook::never,
        "partition {partition} is for groups that do not include the owner",
        "name another partition (-p); scontrol show partition {partition} shows AllowGroups"},
    Row{"InvalidQOS", Outlook::never, "QOS {qos} does not exist, or you may not use it",
        "sacctmgr show associations user=$USER format=account,qos shows yours; then give -q"},
    Row{"QOSNotAllowed", Outlook::never,
        "partition {partition} or the account does not allow QOS {qos}",
        "name another QOS (-q) or partition (-p)"},
    Row{"Job's_QOS_not_*", Outlook::never, "partition {partition} does not allow QOS {qos}",
        "name another QOS (-q) or partition (-p)"},
    Row{"QOSUsageThreshold", Outlook::starts_by_itself,
        "your share of the cluster is used up for now (QOS {qos})",
        "wait until it recovers, or name another QOS (-q)"},
    Row{"AccountingPolicy", Outlook::starts_by_itself, "a limit of the account or QOS is reached",
        ""},
    Row{"PowerNotAvail", Outlook::starts_by_itself,
        "not enough electrical power is available for the nodes now", ""},
    Row{"PowerReserved", Outlook::starts_by_itself, "the electrical power is reserved", ""},
    Row{"BurstBufferOperation", Outlook::needs_site, kBurstBufferFailed, kBurstBufferAdvice},
    Row{"BurstBuffer*", Outlook::starts_by_itself, "the job's data is not in the burst buffer yet",
        ""},
    Row{"burst_buffer/*:_Stage-out_in_progress", Outlook::starts_by_itself,
        "the last run's data is being copied out of the burst buffer", ""},
    Row{"burst_buffer/*", Outlook::needs_site, kBurstBufferFailed, kBurstBufferAdvice},
    Row{"Burst_buffer_*_error", Outlook::needs_site, kBurstBufferFailed, kBurstBufferAdvice},
    Row{"Could_not_find_burst_buffer_record", Outlook::needs_site, kBurstBufferFailed,
        kBurstBufferAdvice},
    Row{"Error_managing_persistent_burst_buffers", Outlook::needs_site, kBurstBufferFailed,
        kBurstBufferAdvice},
    // Texts of 26.05 about the network's topology. Slurm gives the same text whether the job waits
    // for nodes or fits nowhere.
    Row{"Required_nodes_lack_available_resources", Outlook::unknown,
        "the nodes in --nodelist lack the requested resources, now or at all",
        "leave out --nodelist, or name other nodes"},
    Row{"Required_nodes_do_not_fit_topology", Outlook::unknown,
        "the nodes in --nodelist do not lie together in the network, according to Slurm",
        "leave out --nodelist, or name nodes of one block"},
    Row{"No_suitable_topology_unit_found*", Outlook::unknown,
        "no part of the network has enough free nodes for the job, now or at all", kTopology},
    Row{"Insufficient_resources_in_topology_unit", Outlook::unknown,
        "no part of the network has enough free resources for the job, now or at all", kTopology},
    Row{"Weight-based_selection_could_not_satisfy_request_within_topology_unit", Outlook::unknown,
        "no part of the network has enough free nodes for the job, now or at all", kTopology},
    Row{"Exceeded_maximum_node_limit_during_topology_allocation", Outlook::unknown,
        "the nodes together in the network are more than the job may have (--nodes, limits)",
        kTopology},
    Row{"No_available_nodes_in_topology", Outlook::unknown,
        "no usable node is in the network's topology now", kTopology},
    Row{"FedJobLock", Outlook::starts_by_itself,
        "the federation's clusters agree on where the job starts", ""},
    Row{"FrontEndDown", Outlook::needs_site, "the front end of the cluster is down", ""},
    Row{"SystemFailure", Outlook::needs_site, "Slurm, a file system or the network failed",
        "ask the cluster's administrators"},
    Row{"SchedDefer", Outlook::never, "the job could not start at once, as --immediate demands",
        "leave out --immediate"},
    Row{"InactiveLimit", Outlook::never, "the client went away before the start",
        "submit with sbatch"},
    Row{"BlockMaxError", Outlook::needs_site, "the block of nodes failed too often", ""},
    Row{"BlockFreeAction", Outlook::starts_by_itself, "the block of nodes is being freed", ""},
    Row{"JobLaunchFailure", Outlook::needs_site, "the nodes could not start the job", ""},
};

}  // namespace lockstep::slurm::pending_rows
