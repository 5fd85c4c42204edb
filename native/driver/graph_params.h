// Between the client's parameters of a node and what the node holds.
#pragma once

#include "graph.h"

namespace va {

KernelWork kernel_from(const CUDA_KERNEL_NODE_PARAMS &params);
CopyWork copy_from(const CUDA_MEMCPY3D &copy, CUcontext context);
FillWork fill_from(const CUDA_MEMSET_NODE_PARAMS &fill, CUcontext context);
HostWork host_from(const CUDA_HOST_NODE_PARAMS &host);
MemoryOpsWork memory_ops_from(const CUDA_BATCH_MEM_OP_NODE_PARAMS &params);
ChildWork child_from(CUgraph graph, bool moved);
RecordWork record_from(CUevent event);
WaitWork wait_from(CUevent event);
AllocWork alloc_from(const CUDA_MEM_ALLOC_NODE_PARAMS &params,
                     const std::vector<GraphNode *> &needs);
FreeWork free_from(const Graph &graph, CUdeviceptr address);
ConditionalWork conditional_from(const Graph &graph, const CUDA_CONDITIONAL_NODE_PARAMS &params);

// What a node does, as parameters of any kind say.
Work work_from(Graph &graph, const std::vector<GraphNode *> &needs,
               const CUgraphNodeParams &params);
// New parameters for what a node does already; its kind stays, and so do a kernel's attributes.
Work changed(const Work &before, const CUgraphNodeParams &params);
CUgraphNodeParams params_of(GraphNode &node);

CUgraphNodeParams as_params(const CUDA_KERNEL_NODE_PARAMS_v1 &kernel);

} // namespace va
