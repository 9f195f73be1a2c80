#include "cloud/aws/provider.h"

#include "base/text.h"
#include "cloud/aws/check.h"
#include "cloud/aws/launcher.h"
#include "cloud/aws/machines.h"
#include "cloud/aws/network.h"
#include "cloud/aws/offers.h"
#include "cloud/aws/places.h"

#include <fmt/core.h>

namespace lockstep::cloud::aws {
namespace {

constexpr Traits kAwsTraits{
    .name = "aws",
    .title = "AWS EC2",
    .gang_in_one_call = true,
    .has_spot = true,
    .resends_token = true,
    .private_network = true,
    .ending = Ending::by_itself,
    .notice = NoticeSource::token_and_poll,
    .port_rule = PortRule::of_region,
    .minimum_billing_s = 60,
    .notice_s = 120,
    .keys_hint =
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, ~/.aws/credentials, "
        "~/.aws/config, `aws configure export-credentials`, EC2 instance metadata",
    .console =
        "https://{region}.console.aws.amazon.com/ec2/home?region={region}#Instances: , "
        "terminate {id}",
    .fake_hint =
        "signatures, requests and answers are those of AWS's own SDK; prices, stock, quotas "
        "and refusals are known from a fake only",
    .file_variables = {"AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"},
};

class AwsProvider : public Provider {
 public:
  explicit AwsProvider(Ground ground) : api_(std::move(ground)), launcher_(api_) {}

  const Traits& traits() const override { return kAwsTraits; }
  Status keys() override { return api_.ring().find(); }
  std::string keys_note(Web& web, std::int64_t until_ms) override {
    return api_.ready(web) ? aws::keys_note(api_.keys(), until_ms) : std::string();
  }
  Result<std::string> account(Web& web) override {
    auto account = account_of(web, api_);
    if (!account) return tl::make_unexpected(account.error().error());
    return std::move(*account);
  }
  Catalog offers(Web& web, const OfferQuery& query) override {
    return find_offers(web, api_, query);
  }

  tl::expected<LaunchCall, LaunchOutcome> prepare(Web& web, const LaunchSpec& spec) override {
    return launcher_.prepare(web, spec);
  }
  LaunchOutcome launch(Web& web, const LaunchSpec& /*spec*/, const LaunchCall& call) override {
    return launcher_.launch(web, call);
  }
  LaunchOutcome resolve(Web& web, const LaunchSpec& /*spec*/, const LaunchCall& call,
                        std::int64_t asked_ms) override {
    return launcher_.resolve(web, call, asked_ms);
  }

  Result<Listing> list(Web& web, const ListQuery& query) override {
    return list_machines(web, api_, query);
  }
  Status end(Web& web, const std::vector<Machine>& machines) override {
    return end_machines(web, api_, machines);
  }
  Status allow(Web& web, const std::string& region, const std::string& cidrs) override;
  std::vector<Finding> check(Web& web) override { return check_account(web, api_); }
  Status clean(Web& web) override;

 private:
  Api api_;
  Launcher launcher_;
};

Status AwsProvider::allow(Web& web, const std::string& region, const std::string& cidrs) {
  const std::string& owner = api_.ring().ground().owner;
  auto network = find_network(web, api_, region, owner);
  if (!network) return tl::make_unexpected(network.error().error());
  if (!network->group)
    return fail(Errc::not_found,
                fmt::format("there is no security group {} in {}", group_name(owner), region));
  // Remember the rules from before opening: only those may be closed.
  const Group before = *network->group;
  // Open the new networks before closing old ones: if closing fails, this client still gets in.
  const std::vector<std::string> wanted = split(cidrs, ',');
  for (const std::string& cidr : wanted)
    if (const auto open = open_group(web, api_, region, owner, cidr, *network); !open)
      return tl::make_unexpected(open.error().error());
  if (const auto closed = close_others(web, api_, region, before, wanted); !closed)
    return tl::make_unexpected(closed.error().error());
  return {};
}

Status AwsProvider::clean(Web& web) {
  // Any enabled region may have a group of this installation.
  const auto places = regions(web, api_, 0);
  if (!places) return tl::make_unexpected(places.error().error());
  const std::string& owner = api_.ring().ground().owner;
  std::vector<Asked<void>> answers(places->size());
  for_all_at_once(web, places->size(), [&](Web& own, std::size_t i) {
    const auto network = find_network(own, api_, (*places)[i], owner);
    if (!network)
      answers[i] = tl::make_unexpected(network.error());
    else if (network->group)
      answers[i] = delete_group(own, api_, (*places)[i], *network->group);
  });
  for (const Asked<void>& answer : answers) {
    if (answer) continue;
    Error error = answer.error().error();
    // AWS keeps a group in use for minutes after its machines were terminated.
    if (answer.error().code == "DependencyViolation")
      error.hint = "machines in it have only just ended: try again in a few minutes";
    return tl::make_unexpected(std::move(error));
  }
  return {};
}

}  // namespace

std::unique_ptr<Provider> make_provider(Ground ground) {
  return std::make_unique<AwsProvider>(std::move(ground));
}

}  // namespace lockstep::cloud::aws
