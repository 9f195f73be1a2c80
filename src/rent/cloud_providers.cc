#include "rent/cloud_providers.h"

#include "cloud/aws/provider.h"
#include "cloud/gcp/gcp.h"
#include "cloud/lambda/lambda.h"
#include "cloud/runpod/runpod.h"

namespace lockstep::rent {

std::vector<std::unique_ptr<cloud::Provider>> cloud_providers(const cloud::Ground& ground) {
  std::vector<std::unique_ptr<cloud::Provider>> providers;
  providers.push_back(cloud::aws::make_provider(ground));
  providers.push_back(cloud::gcp::make_provider(ground));
  providers.push_back(cloud::lambda::make_provider(ground));
  providers.push_back(cloud::runpod::make_provider(ground));
  return providers;
}

}  // namespace lockstep::rent
