#include "cloud/table/provider_table.h"

#include "cloud/aws/provider.h"
#include "cloud/gcp/gcp.h"
#include "cloud/lambda/lambda.h"
#include "cloud/runpod/runpod.h"

#include <array>

namespace lockstep::cloud::table {
namespace {

constexpr std::array kProviders{
    ProviderRow{"aws", aws::make_provider},
    ProviderRow{"gcp", gcp::make_provider},
    ProviderRow{"lambda", lambda::make_provider},
    ProviderRow{"runpod", runpod::make_provider},
};

}  // namespace

std::span<const ProviderRow> providers() {
  return kProviders;
}

std::vector<std::unique_ptr<Provider>> make_providers(const Ground& ground) {
  std::vector<std::unique_ptr<Provider>> made;
  made.reserve(kProviders.size());
  for (const ProviderRow& row : kProviders)
    made.push_back(row.make(ground));
  return made;
}

}  // namespace lockstep::cloud::table
