# Builds one file of hip-tests with its harness, and the code objects and programs that it asks for:
# make CHECKOUTS=... SHARED="..." FILE.kernel-gym [NAME.code] [NAME_exe]
CATCH := $(CHECKOUTS)/hip-tests/catch
HIP6 := $(CHECKOUTS)/hip-tests/kernel-gym-hip6
HARNESS := $(addprefix $(HIP6)/,main.o hip_test_context.o hip_test_features.o Set.o)
FLAGS := -w -std=c++17 -O1 -I$(HIP6)/include -I$(CATCH)/include -I$(CATCH)/external/Catch2 \
	-I$(CATCH)/external/picojson -I$(CATCH)/kernels

.SECONDARY: $(HARNESS)

%.kernel-gym: %.cc $(HARNESS)
	hipcc $(FLAGS) $< $(SHARED) $(HARNESS) -o $@

%.kernel-gym: %.cpp $(HARNESS)
	hipcc $(FLAGS) $< $(SHARED) $(HARNESS) -o $@

%.code: %.cc | $(HIP6)/include/hip/hip_version.h
	hipcc --genco $(FLAGS) $< -o $@

%.code: %.cpp | $(HIP6)/include/hip/hip_version.h
	hipcc --genco $(FLAGS) $< -o $@

%_exe: %_exe.cc | $(HIP6)/include/hip/hip_version.h
	hipcc $(FLAGS) $< -o $@

$(HIP6)/%.o: $(CATCH)/kernels/%.cpp | $(HIP6)/include/hip/hip_version.h
	hipcc $(FLAGS) -c $< -o $@

$(HIP6)/%.o: $(CATCH)/hipTestMain/%.cc | $(HIP6)/include/hip/hip_version.h
	hipcc $(FLAGS) -c $< -o $@

$(HIP6)/include/hip/hip_version.h:
	mkdir -p $(HIP6)/include
	cp -r $(CHECKOUTS)/HIP/include/hip $(HIP6)/include
	cp -r $(CHECKOUTS)/clr/hipamd/include/hip/amd_detail $(HIP6)/include/hip
	printf '#define HIP_VERSION_MAJOR 6\n#define HIP_VERSION_MINOR 2\n#define HIP_VERSION_PATCH 0\n' > $@
	printf '#define HIP_VERSION 60200000\n#define HIP_VERSION_GITHASH "0"\n' >> $@
	printf '#define HIP_VERSION_BUILD_ID 0\n#define HIP_VERSION_BUILD_NAME ""\n' >> $@
	printf '#define __HIP_HAS_GET_PCH 0\n' >> $@
