/* A library with the binary interface of MPI 5, made of Open MPI: no distribution has one yet. It has the functions that the crate loads, with
   the values of the standard for handles and constants (mpi.h of https://github.com/mpi-forum/mpi-abi-stubs), and calls those of Open MPI
   by their second names. Handles that Open MPI makes are pointers, as in MPI 5, and pass as they are. */

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static uintptr_t number(const void *handle) { return (uintptr_t) handle; }

/* Small numbers that are no handle of MPI 5, or none that this library knows, end the program: Open MPI would take them for addresses. */
static void *pointer(void *handle) {
    if (number(handle) < 0x1000) abort();
    return handle;
}

static MPI_Comm comm(MPI_Comm handle) {
    return number(handle) == 0x101 ? MPI_COMM_WORLD : pointer(handle);
}

static MPI_Datatype type(MPI_Datatype handle) {
    return number(handle) == 0x247 ? MPI_BYTE : pointer(handle);
}

static MPI_Errhandler errhandler(MPI_Errhandler handle) {
    if (number(handle) == 0x141) return MPI_ERRORS_ARE_FATAL;
    if (number(handle) == 0x142) return MPI_ERRORS_RETURN;
    return pointer(handle);
}

/* Requests, before and after a call. */
static void to_open(MPI_Request *request) {
    *request = number(*request) == 0x180 ? MPI_REQUEST_NULL : pointer(*request);
}

static void to_abi(MPI_Request *request) {
    if (*request == MPI_REQUEST_NULL) *request = (MPI_Request) 0x180;
}

/* A status of MPI 5 has another size than one of Open MPI, so it must be ignored. */
static MPI_Status *status(MPI_Status *ignored) {
    if (ignored) abort();
    return MPI_STATUS_IGNORE;
}

static int level_to_open(int level) { return level / 1024 > 3 ? MPI_THREAD_MULTIPLE : level / 1024; }

static int level_to_abi(int level) { return level == MPI_THREAD_MULTIPLE ? 4096 : level * 1024; }

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    int code = PMPI_Init_thread(argc, argv, level_to_open(required), provided);
    *provided = level_to_abi(*provided);
    return code;
}

int MPI_Query_thread(int *provided) {
    int code = PMPI_Query_thread(provided);
    *provided = level_to_abi(*provided);
    return code;
}

int MPI_Initialized(int *flag) { return PMPI_Initialized(flag); }

int MPI_Finalized(int *flag) { return PMPI_Finalized(flag); }

int MPI_Finalize(void) { return PMPI_Finalize(); }

int MPI_Get_library_version(char *version, int *length) {
    strcpy(version, "MPI 5 made of Open MPI");
    *length = (int) strlen(version);
    return MPI_SUCCESS;
}

int MPI_Comm_dup(MPI_Comm old, MPI_Comm *made) { return PMPI_Comm_dup(comm(old), made); }

int MPI_Comm_idup(MPI_Comm old, MPI_Comm *made, MPI_Request *request) {
    int code = PMPI_Comm_idup(comm(old), made, request);
    to_abi(request);
    return code;
}

int MPI_Comm_free(MPI_Comm *handle) { return PMPI_Comm_free(handle); }

int MPI_Comm_rank(MPI_Comm of, int *rank) { return PMPI_Comm_rank(comm(of), rank); }

int MPI_Comm_size(MPI_Comm of, int *size) { return PMPI_Comm_size(comm(of), size); }

int MPI_Comm_set_errhandler(MPI_Comm of, MPI_Errhandler handle) {
    return PMPI_Comm_set_errhandler(comm(of), errhandler(handle));
}

int MPI_Comm_get_attr(MPI_Comm of, int key, void *value, int *flag) {
    if (key != 501) abort();
    return PMPI_Comm_get_attr(comm(of), MPI_TAG_UB, value, flag);
}

int MPI_Isend(const void *from, int count, MPI_Datatype of, int to, int tag, MPI_Comm in, MPI_Request *request) {
    int code = PMPI_Isend(from, count, type(of), to, tag, comm(in), request);
    to_abi(request);
    return code;
}

int MPI_Issend(const void *from, int count, MPI_Datatype of, int to, int tag, MPI_Comm in, MPI_Request *request) {
    int code = PMPI_Issend(from, count, type(of), to, tag, comm(in), request);
    to_abi(request);
    return code;
}

int MPI_Irecv(void *into, int count, MPI_Datatype of, int from, int tag, MPI_Comm in, MPI_Request *request) {
    int code = PMPI_Irecv(into, count, type(of), from == -1 ? MPI_ANY_SOURCE : from, tag, comm(in), request);
    to_abi(request);
    return code;
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *ignored) {
    to_open(request);
    int code = PMPI_Test(request, flag, status(ignored));
    to_abi(request);
    return code;
}

int MPI_Testsome(int count, MPI_Request *requests, int *over, int *places, MPI_Status *ignored) {
    (void) status(ignored);
    for (int i = 0; i < count; i++) to_open(&requests[i]);
    int code = PMPI_Testsome(count, requests, over, places, MPI_STATUSES_IGNORE);
    for (int i = 0; i < count; i++) to_abi(&requests[i]);
    return code;
}

int MPI_Wait(MPI_Request *request, MPI_Status *ignored) {
    to_open(request);
    int code = PMPI_Wait(request, status(ignored));
    to_abi(request);
    return code;
}

int MPI_Cancel(MPI_Request *request) {
    to_open(request);
    int code = PMPI_Cancel(request);
    to_abi(request);
    return code;
}

int MPI_Abort(MPI_Comm in, int code) { return PMPI_Abort(comm(in), code); }

int MPI_Alltoall(const void *from, int count, MPI_Datatype of, void *into, int counts, MPI_Datatype types, MPI_Comm in) {
    return PMPI_Alltoall(from, count, type(of), into, counts, type(types), comm(in));
}

int MPI_Type_create_hvector(int count, int length, MPI_Aint stride, MPI_Datatype old, MPI_Datatype *made) {
    return PMPI_Type_create_hvector(count, length, stride, type(old), made);
}

int MPI_Type_commit(MPI_Datatype *handle) { return PMPI_Type_commit(handle); }

int MPI_Type_free(MPI_Datatype *handle) { return PMPI_Type_free(handle); }

int MPI_Error_string(int code, char *text, int *length) { return PMPI_Error_string(code, text, length); }
